#include "common/train/job_check.h"

#include <filesystem>

#include "common/model/model_graph.h"
#include "tests/unit/data/npy_files.h"
#include "tests/unit/train/job_check_fixture.h"

namespace dtf::train {

namespace {

using data::idxHeader;
using data::kImagesMagic;
using data::kLabelsMagic;

constexpr ErrorCode kBadConfig = ErrorCode::kBadConfig;
constexpr ErrorCode kBadData = ErrorCode::kBadData;

constexpr const char* kEightByEight =
    "  model: {input: {shape: [8, 8]}, layers: [flatten, dense: {units: 10}], loss: mse}\n"
    "  data:\n"
    "    batch_size: 10\n"
    "    train: {format: idx, images: i, labels: l}\n";

}  // namespace

// A job with tasks on several hosts.
TEST_F(JobCheckTest, DataThatOnlyOtherHostsReadMayBeMissingHere) {
  EXPECT_NE(mistakesOf(kEightByEight, kBadData), "");
  runs_here_ = [](const cluster::Address& address) { return address.host == "a"; };
  EXPECT_EQ(mistakesOf(kEightByEight), "");
  EXPECT_NE(warnings_.find("warning: i is not on this host, where no"), std::string::npos);
  writeImages("i", 20, 9);
  writeLabels("l", 20, '\1');
  EXPECT_NE(mistakesOf(kEightByEight).find("c.yaml:3:19"), std::string::npos) << "what is here";
}

TEST_F(JobCheckTest, OnlyTheTasksOfThisHostCountAgainstItsMemory) {
  runs_here_ = [](const cluster::Address& address) { return address.host == "a"; };
  EXPECT_EQ(mistakesOf(kSoftmax), "");
  ASSERT_TRUE(size_);
  EXPECT_EQ(size_->memory_bytes, 2u * 31400) << "both ps; the workers and their data are elsewhere";
  runs_here_ = [](const cluster::Address& address) {
    return address.host == "b" && address.port == 2;
  };
  EXPECT_EQ(mistakesOf(kSoftmax), "");
  EXPECT_EQ(size_->memory_bytes, 2u * 31400 + 785 * 10'000 + kOutputBytes)
      << "a worker, not the chief";
}

TEST_F(JobCheckTest, AJobWithoutATrainSectionHasALine) {
  EXPECT_EQ(mistakesIn("job: x\ncluster: {ps: [a:1], worker: [b:1]}\n", kBadConfig),
            "c.yaml:1:1: error: missing key 'train': a TRAIN.yaml, relative to this file, or its "
            "keys in place\n  1 | job: x\n    | ^~~");
}

TEST_F(JobCheckTest, LayersThatDoNotFitAreShownWhereTheyAre) {
  EXPECT_EQ(mistakesOf("  model:\n    input: {shape: [28, 28, 1]}\n    layers:\n"
                       "      - dense: {units: 10, name: softmax}\n    loss: mse\n"),
            "c.yaml:6:9: error: layer 'softmax' needs a flat input, or [steps, features], got [28, "
            "28, 1]: add 'flatten' before it\n"
            "  6 |       - dense: {units: 10, name: softmax}\n"
            "    |         ^~~~~");
}

TEST_F(JobCheckTest, APinOfAnUnknownVariableIsShownWithTheNearest) {
  EXPECT_EQ(
      mistakesOf(std::string(kSoftmax) + "  placement: {pins: {dense/wieghts: /job:ps/task:1}}\n"),
      "c.yaml:4:22: error: the model has no variable 'dense/wieghts' - did you mean "
      "'dense/weights'?\n"
      "  4 |   placement: {pins: {dense/wieghts: /job:ps/task:1}}\n"
      "    |                      ^~~~~~~~~~~~~");
  EXPECT_EQ(
      mistakesOf(std::string(kSoftmax) + "  placement: {pins: {dense/weights: /job:ps/task:1}}\n"),
      "");
  EXPECT_EQ(size_->ps_bytes, (std::vector<uint64_t>{40, 31360}));
}

TEST_F(JobCheckTest, AHybridPlacementWithoutTablesIsShownAtItsStrategy) {
  const std::string mistakes =
      mistakesOf(std::string(kSoftmax) + "  placement: {strategy: hybrid}\n");
  EXPECT_NE(mistakes.find(": error: 'strategy: hybrid' places the sparse variables on the ps, and "
                          "this job has none"),
            std::string::npos)
      << mistakes;
  EXPECT_NE(mistakes.find("| "), std::string::npos) << "its line is shown";
}

TEST_F(JobCheckTest, MissingDataFilesAreShownAtTheKeysThatNameThem) {
  EXPECT_EQ(mistakesOf(kEightByEight, kBadData),
            "c.yaml:6:34: error: i: cannot open it: No such file or directory (2)\n"
            "  6 |     train: {format: idx, images: i, labels: l}\n"
            "    |                                  ^\n"
            "c.yaml:6:45: error: l: cannot open it: No such file or directory (2)\n"
            "  6 |     train: {format: idx, images: i, labels: l}\n"
            "    |                                             ^");
}

TEST_F(JobCheckTest, ImagesAreComparedWithTheModelsInput) {
  writeLabels("l", 20, 9);
  writeImages("i", 20, 8);
  EXPECT_EQ(mistakesOf(kEightByEight), "") << "[8, 8] is [8, 8, 1]";
  writeImages("i", 20, 9);
  EXPECT_EQ(firstLine(mistakesOf(kEightByEight)),
            "c.yaml:3:19: error: the model reads examples of shape [8, 8], but got [9, 9, 1] "
            "from i: set model.input.shape to [9, 9, 1], or use other images");
}

TEST_F(JobCheckTest, LabelsAreComparedWithTheUnitsAndTheImages) {
  writeImages("i", 20, 8);
  writeLabels("l", 20, 10);
  EXPECT_NE(mistakesOf(kEightByEight, kBadData)
                .find("c.yaml:6:45: error: l: example 0 has label 10, but layer 'dense' has 10"),
            std::string::npos);
  writeLabels("l", 19, 9);
  EXPECT_NE(
      mistakesOf(kEightByEight, kBadData).find("c.yaml:6:45: error: l: 19 labels, but i holds 20"),
      std::string::npos);
  EXPECT_NE(mistakesOf("  model: {input: {shape: [28, 28]}, layers: [flatten, dense: {units: 9}], "
                       "loss: mse}\n")
                .find("c.yaml:3:55: error: the embedded digits have 10 classes, but layer 'dense' "
                      "has 9 units"),
            std::string::npos);
}

// The check lists the folders and opens no file.
TEST_F(JobCheckTest, FoldersOfImagesAreJudgedByTheirSubfolders) {
  std::filesystem::create_directories("f/a");
  std::filesystem::create_directories("f/b");
  const auto train = [](const std::string& shape, int units) {
    return "  model: {input: {shape: " + shape +
           "}, layers: [flatten, dense: {units: " + std::to_string(units) +
           ", name: d}], loss: mse}\n" +
           "  data: {batch_size: 3, train: {format: images, folder: f}}\n";
  };
  EXPECT_EQ(firstLine(mistakesOf(train("[8, 8, 3]", 2), kBadData)),
            "c.yaml:4:57: error: f: there is no image in its subfolders (.png, .jpg, .jpeg, "
            ".jpe, .jfif, .webp, .bmp)");
  files_.write("f/a/1.png", "");
  files_.write("f/b/1.jpg", "");
  EXPECT_NE(
      mistakesOf(train("[8, 8, 3]", 2)).find("batch_size is 3, but there are 2 examples in f"),
      std::string::npos);
  files_.write("f/b/2.jpg", "");
  EXPECT_EQ(mistakesOf(train("[8, 8, 3]", 2)), "");
  EXPECT_EQ(mistakesOf(train("[8, 8]", 2)), "");
  std::filesystem::create_directories("f/c");
  EXPECT_NE(mistakesOf(train("[8, 8, 3]", 2))
                .find("the subfolders of f have 3 classes, but layer 'd' has 2 units"),
            std::string::npos);
  EXPECT_EQ(firstLine(mistakesOf(train("[64]", 3))),
            "c.yaml:3:19: error: format images needs a model.input.shape of [height, width], with "
            "1 or 3 channels as a third size, got [64]");
}

TEST_F(JobCheckTest, EachFileOfCifar10IsJudgedAtItsOwnPlace) {
  const std::string record(3073, '\3');
  files_.write("a.bin", record + record);
  files_.write("b.bin", record + record.substr(1));
  const std::string train =
      "  model: {input: {shape: [32, 32, 3]}, layers: [flatten, dense: {units: 10, name: d}], "
      "loss: "
      "mse}\n"
      "  data:\n"
      "    batch_size: 2\n"
      "    train: {format: cifar10, files: [a.bin, FILE]}\n";
  const auto with = [&train](const std::string& file, std::string text = "") {
    if (text.empty()) text = train;
    return text.replace(text.find("FILE"), 4, file);
  };
  EXPECT_EQ(mistakesOf(with("a.bin")), "");
  ASSERT_TRUE(size_);
  EXPECT_EQ(
      firstLine(mistakesOf(with("b.bin"), kBadData)),
      "c.yaml:6:45: error: b.bin: record 1 has 3072 bytes, one of CIFAR-10 has 3073: the file "
      "is cut off, or of another kind");
  EXPECT_NE(mistakesOf(with("nowhere"), kBadData).find("c.yaml:6:45: error: nowhere: cannot open"),
            std::string::npos);
  std::string five = train;
  five.replace(five.find("units: 10"), 9, "units: 5");
  EXPECT_NE(mistakesOf(with("a.bin", five))
                .find("CIFAR-10 have 10 classes, but layer 'd' has 5 units: give it at least 10"),
            std::string::npos);
  std::string gray = train;
  gray.replace(gray.find("32, 3]"), 6, "32, 1]");
  EXPECT_NE(mistakesOf(with("a.bin", gray)).find("got [32, 32, 3] from a.bin"), std::string::npos);
}

TEST_F(JobCheckTest, TablesAreComparedWithTheModel) {
  files_.write("t.csv", "a,b,y\n1,2,3\n");
  const auto job = [](const std::string& shape, const std::string& units, const std::string& data) {
    return "  model: {input: {shape: [" + shape + "]}, layers: [dense: {units: " + units +
           ", name: d}], loss: mse}\n  data: {batch_size: 1, train: {" + data + "}}\n";
  };
  const std::string csv = "format: csv, files: [t.csv], target_columns: [y]";
  EXPECT_EQ(mistakesOf(job("2", "1", csv)), "");
  EXPECT_GT(size_->memory_bytes, 0u);
  EXPECT_EQ(
      firstLine(mistakesOf(job("3", "1", csv))),
      "c.yaml:3:19: error: the model reads examples of shape [3], but got [2] from t.csv: "
      "its features are the columns a, b: set model.input.shape to [2], or choose the columns "
      "with feature_columns (numbers) and categorical_columns (words, ids)");
  EXPECT_NE(mistakesOf(job("2", "2", csv), kBadData).find("t.csv: each example has 1 target"),
            std::string::npos);
  const std::string wrong = "format: csv, files: [t.csv], target_columns: [x]";
  EXPECT_EQ(firstLine(mistakesOf(job("2", "1", wrong))),
            "c.yaml:4:79: error: t.csv: there is no column 'x' among 3 (one of a, b, y)");
  const std::string words = "format: csv, files: [t.csv], label_column: y, class_names: [u, v, w]";
  EXPECT_NE(mistakesOf(job("2", "2", words)).find("class_names have 3 classes"), std::string::npos);
  EXPECT_EQ(mistakesOf(job("2", "3", words)), "");
}

TEST_F(JobCheckTest, EachMisspeltColumnIsNamedAtItsPlace) {
  files_.write("t.csv", "height,width,colour,kind\n1,2,red,0\n3,4,blue,1\n");
  const std::string mistakes = mistakesOf(
      "  model: {input: {shape: [2]}, layers: [dense: {units: 2}, embedding: {categories: colour,\n"
      "          input_dim: 10, output_dim: 2}], loss: mse}\n"
      "  data:\n"
      "    batch_size: 1\n"
      "    train:\n"
      "      format: csv\n"
      "      files: [t.csv]\n"
      "      label_column: knid\n"
      "      feature_columns: [height, widht]\n"
      "      categorical_columns:\n"
      "        colour: {columns: [color], hash_bucket_size: 10}\n");
  for (const char* mistake :
       {"c.yaml:10:21: error: t.csv: there is no column 'knid' among 4 - did you mean 'kind'?\n"
        "  10 |       label_column: knid\n"
        "     |                     ^~~~\n",
        "c.yaml:11:33: error: t.csv: there is no column 'widht' among 4 - did you mean 'width'?",
        "c.yaml:13:28: error: t.csv: there is no column 'color' among 4 - did you mean 'colour'?"})
    EXPECT_NE(mistakes.find(mistake), std::string::npos) << mistake << "\n" << mistakes;
}

TEST_F(JobCheckTest, ArraysAreComparedWithTheModel) {
  files_.write("x.npy", data::npyOf<float>("<f4", "(2, 3)", {1, 2, 3, 4, 5, 6}));
  files_.write("y.npy", data::npyOf<int32_t>("<i4", "(2,)", {0, 1}));
  const auto job = [](const std::string& shape, int batch_size) {
    return "  model: {input: {shape: [" + shape +
           "]}, layers: [dense: {units: 2}], loss: mse}\n  data:\n    batch_size: " +
           std::to_string(batch_size) +
           "\n    train: {format: npy, features: x.npy, labels: y.npy}\n";
  };
  EXPECT_EQ(mistakesOf(job("3", 2)), "");
  EXPECT_NE(mistakesOf(job("4", 2)).find("got [3] from x.npy"), std::string::npos);
  EXPECT_NE(mistakesOf(job("3", 3)).find("batch_size is 3, but there are 2 examples in x.npy"),
            std::string::npos);
  files_.write("y.npy", data::npyOf<int32_t>("<i4", "(3,)", {0, 1, 1}));
  EXPECT_EQ(firstLine(mistakesOf(job("3", 2), kBadData)),
            "c.yaml:6:51: error: y.npy: 3 examples, but x.npy has 2: the two arrays don't belong "
            "together");
}

TEST_F(JobCheckTest, DrawnExamplesAreComparedWithTheModel) {
  const auto job = [](const std::string& units, const std::string& problem) {
    return "  model: {input: {shape: [10]}, layers: [dense: {units: " + units +
           ", name: d}], loss: mse}\n  data: {train: {format: synthetic, problem: " + problem +
           "}}\n";
  };
  EXPECT_EQ(mistakesOf(job("1", "friedman")), "");
  EXPECT_EQ(mistakesOf(job("1", "linear")), "") << "one unit tells two classes";
  EXPECT_EQ(mistakesOf(job("4", "tags")), "");
  EXPECT_NE(mistakesOf(job("3", "tags"), kBadData).find("each example has 4 targets"),
            std::string::npos);
  const std::string mistakes = mistakesOf(job("1", "centres"));
  EXPECT_NE(mistakes.find("the drawn examples have 10 classes"), std::string::npos);
}

TEST_F(JobCheckTest, TheModelOfEveryJobThatIsShippedCanBeBuilt) {
  int jobs = 0;
  for (const auto& file : std::filesystem::directory_iterator(
           std::filesystem::path(DTF_SOURCE_ROOT) / "configs/jobs")) {
    if (file.is_directory()) continue;  // tests/e2e/init_test.cc checks jobs beside their data
    const cluster::TrainSpec train = testing::readTrainFile(file.path());
    EXPECT_FALSE(model::buildTrainingGraph(train.model, 2).variables.empty()) << file.path();
    EXPECT_GE(model::outputOf(train.model).units, 1) << file.path();
    ++jobs;
  }
  EXPECT_GE(jobs, 11);
}

TEST_F(JobCheckTest, ABatchIsNoLargerThanItsData) {
  const std::string expected =
      "batch_size is 51, but there are 50 examples in the embedded digits: choose a batch_size "
      "from "
      "1 to 50";
  EXPECT_EQ(
      mistakesOf(std::string(kSoftmax) +
                 "  data:\n    train: {format: digits, count: 50}\n    batch_size: 51\n"),
      "c.yaml:6:17: error: " + expected + "\n  6 |     batch_size: 51\n    |                 ^~");
  // The default, 100, has no line of its own: the error points at the data.
  EXPECT_NE(mistakesOf(std::string(kSoftmax) + "  data:\n    train: {format: digits, count: 50}\n")
                .find("c.yaml:5:5: error: batch_size is 100"),
            std::string::npos);
}

TEST_F(JobCheckTest, APatienceThatTheJobIsTooShortForIsAWarningAtItsLine) {
  EXPECT_EQ(mistakesOf("  model:\n    input: {shape: [28, 28, 1]}\n"
                       "    layers: [flatten, dense: {units: 10}]\n"
                       "    loss: sparse_categorical_crossentropy\n"
                       "  data: {train: {format: digits}, eval: {format: digits}}\n"
                       "  eval: {every_steps: 10}\n"
                       "  steps: 100\n"
                       "  early_stopping:\n    patience: 9\n"),
            "");
  EXPECT_EQ(warnings_.find("c.yaml:11:15: warning: early_stopping can't end the job: its patience "
                           "is 9 evaluations, and there are 9 before"),
            0u)
      << warnings_;
}

TEST_F(JobCheckTest, AllAtOnceInTheOrderOfTheFile) {
  files_.write("i", "label,pixel0\n");
  const std::string report = mistakesOf(
      "  model: {input: {shape: [8, 4, 2]}, layers: [dense: {units: 10}], loss: mse}\n"
      "  data:\n"
      "    train: {format: idx, images: i, labels: l}\n");
  const size_t layer = report.find("c.yaml:3:47: error: layer 'dense' needs a flat input");
  const size_t images = report.find("c.yaml:5:34: error: i: this looks like text such as CSV");
  const size_t labels = report.find("c.yaml:5:45: error: l: cannot open it");
  EXPECT_TRUE(layer < images && images < labels && labels != std::string::npos) << report;
}

TEST_F(JobCheckTest, AMistakeOfTheCommandLineIsShownAsSuch) {
  EXPECT_EQ(mistakesIn("cluster: {ps: [a:1], worker: [b:1]}\ntrain:\n" + std::string(kSoftmax),
                       kBadConfig, kHost, {"train.data.batch_size=20000"}),
            "--set train.data.batch_size=20000: error: batch_size is 20000, but there are 10000 "
            "examples in the embedded digits: choose a batch_size from 1 to 10000");
}

TEST_F(JobCheckTest, ABatchThatTheHostCannotHoldIsRefusedInWords) {
  const std::string wide =
      "  model:\n    input: {shape: [28, 28, 1]}\n    layers:\n"
      "      - conv2d: {filters: 200000, kernel_size: 3, activation: relu, name: wide}\n"
      "      - global_average_pooling2d\n      - dense: {units: 10}\n    loss: mse\n";
  EXPECT_EQ(
      firstLine(mistakesOf(wide)),
      "c.yaml:6:9: error: layer 'wide' keeps 50.4 GiB of each batch for its gradients, and the 2 "
      "ps and 2 workers here need at least 101.0 GiB together; this host has 16.0 GiB");
}

TEST_F(JobCheckTest, MoreParametersThanTheHostCanHoldAreRefusedInWords) {
  const std::string wide =
      "  model:\n    input: {shape: [28, 28]}\n    layers: [flatten, dense: {units: 1000000, name: "
      "a}, dense: {units: 1000000, name: b}]\n    loss: mse\n";
  EXPECT_EQ(firstLine(mistakesOf(wide)),
            "c.yaml:5:57: error: layer 'b' has 3.6 TiB of parameters, and the 2 ps and 2 workers "
            "here need at least 21.8 TiB together; this host has 16.0 GiB");
  const std::string large =
      "  model: {input: {shape: [28, 28]}, layers: [flatten, dense: {units: 500000}], loss: mse}\n";
  EXPECT_EQ(mistakesOf(large), "");
  EXPECT_EQ(firstLine(warnings_),
            "c.yaml:3:55: warning: layer 'dense' has 1.5 GiB of parameters, and the 2 ps and 2 "
            "workers here need at least 9.2 GiB together; this host has 8.0 GiB available");
  EXPECT_EQ(mistakesOf(large, kBadConfig, {}), "");
  EXPECT_EQ(warnings_, "") << "what is not known refuses nothing";
}

// 75 GB of images in a sparse file; the host has 16 GiB.
TEST_F(JobCheckTest, MoreDataThanMemoryIsMappedAndNotCounted) {
  constexpr uint32_t kCount = 1'000'000;
  constexpr uint32_t kSide = 274;
  files_.write("i", idxHeader(kImagesMagic, {kCount, kSide, kSide}));
  std::filesystem::resize_file("i", 16 + uint64_t{kCount} * kSide * kSide);
  writeLabels("l", kCount, 9);
  const std::string train =
      "  model: {input: {shape: [274, 274]}, layers: [flatten, dense: {units: 10}], loss: mse}\n"
      "  data: {batch_size: 10, train: {format: idx, images: i, labels: l}}\n";
  EXPECT_EQ(mistakesOf(train), "");
  ASSERT_TRUE(size_);
  EXPECT_LT(size_->memory_bytes, uint64_t{64} << 20);
}

}  // namespace dtf::train
