// Data of each kind through dtf-launch: tables, arrays, synthetic data; and errors in them.

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "common/base/json.h"
#include "tests/e2e/cluster_fixture.h"
#include "tests/unit/data/image_files.h"
#include "tests/unit/data/npy_files.h"

namespace dtf::testing {

using std::chrono::seconds;

class DataTest : public ClusterTest {
 protected:
  // 2 ps and 2 workers in sync mode with this train section.
  std::string write(const std::string& train) {
    return folder_.write("job.yaml", "job: job\nrun_dir: " + folder_.path() +
                                         "/runs/job\ncluster:\n  ps: [localhost:auto, "
                                         "localhost:auto]\n  worker: [localhost:auto, "
                                         "localhost:auto]\ntrain:\n" +
                                         train + "  replication: {mode: sync}\n");
  }

  // y = 3 a - 2 b + 1 for a, b on a grid; `bad` is one more line.
  std::string gridTable(const std::string& bad = "") {
    std::string text = "name,a,y,b\n";
    for (int i = 0; i < 400; ++i) {
      const double a = (i % 20) / 20.0;
      const double b = (i / 20) / 20.0;
      text += "row," + std::to_string(a) + "," + std::to_string(3 * a - 2 * b + 1) + "," +
              std::to_string(b) + "\n";
      if (i == 100) text += bad;
    }
    return text;
  }

  // Images that are red or blue, of different widths: train/red/0.png to eval/blue/99.jpg.
  void writeRedAndBlue() {
    for (int i = 0; i < 100; ++i) {
      const bool red = i % 4 < 2;
      const auto strong = static_cast<uint8_t>(120 + i);
      const std::vector<uint8_t> colour = {red ? strong : uint8_t{40}, 60,
                                           red ? uint8_t{40} : strong};
      const auto width = static_cast<uint32_t>(8 + i % 5);
      const std::vector<uint8_t> pixels = data::plain(width * 10, colour);
      const std::string folder =
          std::string(i < 80 ? "train/" : "eval/") + (red ? "red/" : "blue/");
      std::filesystem::create_directories(folder_.path() + "/" + folder);
      const bool png = i % 2 == 0;
      folder_.write(folder + std::to_string(i) + (png ? ".png" : ".jpg"),
                    png ? data::pngOf(width, 10, pixels) : data::jpegOf(width, 10, 3, pixels));
    }
  }
};

constexpr const char* kLine =
    "  model: {input: {shape: [2]}, layers: [dense: {units: 1}], loss: mse}\n"
    "  data:\n"
    "    train: {format: csv, files: [t.csv], target_columns: [y], feature_columns: [a, b]}\n"
    "    eval: {format: csv, files: [t.csv], target_columns: [y], feature_columns: [a, b]}\n"
    "    batch_size: 40\n"
    "  optimizer: {adam: {learning_rate: 0.1}}\n"
    "  steps: 400\n"
    "  checkpoint: {every_steps: 400}\n";

TEST_F(DataTest, ATableOfNumbersIsLearntAndItsBadRecordIsNamed) {
  folder_.write("t.csv", gridTable("row,zero,1,1\n"));
  std::string train = kLine;
  for (size_t at = 0; (at = train.find("[a, b]}", at)) != std::string::npos; ++at)
    train.replace(at, 7, "[a, b], max_bad_records: 1}");
  const std::string file = write(train);
  const ProcessResult result = launch(file);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LT(summary()["eval"]["loss"].asDouble(), 1e-3);
  const std::string asked = folder_.write("asked.csv", "b,a\n0.25,0.5\n");
  const ProcessResult predicted =
      runProcess({binary("dtf-launch"), "predict", file, "--input", asked, "--json"}, seconds(20));
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  const Json line = Json::parse(predicted.out);
  EXPECT_NEAR(line["outputs"][0].asDouble(), 3 * 0.5 - 2 * 0.25 + 1, 0.1) << predicted.out;
  EXPECT_NE(result.out.find("left out   1 of 401 records of the training data, 1 of 401 records of "
                            "the evaluation's: "),
            std::string::npos)
      << result.out;
  EXPECT_NE(result.out.find("t.csv:103:5: 'zero' in column 'a' is no number"), std::string::npos)
      << result.out;
  EXPECT_EQ(summary()["left_out"]["train"]["records"], 1);
  EXPECT_EQ(summary()["left_out"]["eval"]["of"], 401);
  expectNothingLeft();
}

// By each of two workers, and for both sides of the split, the table is read three times.
TEST_F(DataTest, ARecordThatIsLeftOutIsReportedOnce) {
  folder_.write("t.csv", gridTable("row,zero,1,1\n"));
  const std::string file = write(
      "  model: {input: {shape: [2]}, layers: [dense: {units: 1}], loss: mse}\n"
      "  data:\n    batch_size: 40\n    eval_split: 0.2\n"
      "    train: {format: csv, files: [t.csv], target_columns: [y], feature_columns: [a, b],"
      " max_bad_records: 1}\n"
      "  steps: 4\n");
  const std::string record = "t.csv:103:5: 'zero'";
  const auto times = [&record](const std::string& text) {
    int count = 0;
    for (size_t at = text.find(record); at != text.npos; at = text.find(record, at + 1)) ++count;
    return count;
  };
  const std::vector<std::string> normal = {binary("dtf-launch"), file, "--fresh"};
  const ProcessResult said = runProcess(normal, seconds(60));
  ASSERT_EQ(said.exit_code, 0) << said.err;
  EXPECT_EQ(times(said.err), 1) << said.err;
  EXPECT_EQ(times(said.out), 1) << said.out;
  std::vector<std::string> quiet = normal;
  quiet.push_back("-q");
  const ProcessResult result = runProcess(quiet, seconds(60));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(times(result.err), 0) << result.err;
  EXPECT_EQ(times(result.out), 1) << result.out;
  const ProcessResult checked = runProcess({binary("dtf-launch"), "check", file}, seconds(20));
  EXPECT_EQ(times(checked.err), 1) << checked.err;
  EXPECT_EQ(times(checked.out), 0) << checked.out;
}

TEST_F(DataTest, ATableThatCannotBeReadEndsTheJobAsBadData) {
  folder_.write("t.csv", gridTable("row,zero,1,1\n"));
  const ProcessResult result = launch(write(kLine));
  EXPECT_EQ(result.exit_code, 65) << result.err;
  EXPECT_NE(result.err.find("1 of 401 records can't be read, and max_bad_records is 0"),
            std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("t.csv:103:5: 'zero' in column 'a' is no number"), std::string::npos)
      << result.err;
  expectNothingLeft();
}

// The class is +1 where the second number is there, and -1 where the fourth is.
TEST_F(DataTest, LibsvmFilesAreLearntAndAsked) {
  std::string lines = "# label index:value\n";
  for (int i = 0; i < 200; ++i)
    lines +=
        fmt::format("{} 1:{} {}:1\n", i % 2 == 0 ? "+1" : "-1", (i % 7) * 0.1, i % 2 == 0 ? 2 : 4);
  folder_.write("t.svm", lines);
  folder_.write("e.svm", "+1 2:1\n-1 4:1\n-1 1:0.3 4:1\n");
  const std::string file = write(
      "  model: {input: {shape: [5]}, layers: [dense: {units: 2}], metrics: [accuracy],"
      " loss: sparse_categorical_crossentropy}\n"
      "  data:\n    batch_size: 40\n"
      "    train: {format: libsvm, files: [t.svm]}\n"
      "    eval: {format: libsvm, files: [e.svm]}\n"
      "  optimizer: {adam: {learning_rate: 0.1}}\n  steps: 200\n"
      "  checkpoint: {every_steps: 200}\n");
  const ProcessResult result = launch(file);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(summary()["eval"]["accuracy"], 1);
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {binary("dtf-launch")};
    words.insert(words.end(), more.begin(), more.end());
    return runProcess(words, seconds(30));
  };
  EXPECT_EQ(run({"eval", file}).exit_code, 0);
  const ProcessResult predicted =
      run({"predict", file, "--json", "--input", folder_.write("new.svm", "2:1\n9:1\n4:1\n")});
  EXPECT_NE(predicted.out.find("new.svm:2:1: index 9 is beyond the 5 numbers"), std::string::npos)
      << predicted.out << predicted.err;
  std::istringstream answers(predicted.out);
  std::string classes;
  for (std::string line; std::getline(answers, line);)
    if (const Json answer = Json::parse(line); answer.contains("class"))
      classes += answer["class"].dump();
  EXPECT_EQ(classes, "10") << predicted.out;
  folder_.write("t.svm", "+1 2:1\n-1 4:x\n");
  const ProcessResult refused = run({"check", file});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_NE(refused.err.find("t.svm:2:4: the value 'x' of index 4 is no number"), std::string::npos)
      << refused.err;
  expectNothingLeft();
}

// The class is whether the first number is larger than the second.
TEST_F(DataTest, ArraysOfNumPyAreLearnt) {
  std::vector<double> x;
  std::vector<int64_t> y;
  for (int i = 0; i < 1000; ++i) {
    const double a = (i * 37 % 101) / 101.0;
    const double b = (i * 59 % 103) / 103.0;
    x.insert(x.end(), {a, b});
    y.push_back(a > b ? 1 : 0);
  }
  const std::string x_file = data::npyOf<double>("<f8", "(1000, 2)", x);
  const std::string y_file = data::npyOf<int64_t>("<i8", "(1000,)", y);
  folder_.write("x.npy", x_file);
  folder_.write("y.npy", y_file);
  folder_.write("d.npz", data::zipOf({{"x.npy", x_file}, {"y.npy", y_file}}, true));
  const std::string file = write(
      "  model: {input: {shape: [2]}, layers: [dense: {units: 1}], loss: hinge, metrics: "
      "[accuracy]}\n"
      "  data:\n"
      "    train: {format: npy, features: x.npy, labels: y.npy}\n"
      "    eval: {format: npz, archive: d.npz, features: x, labels: y}\n"
      "  optimizer: {adam: {learning_rate: 0.05}}\n"
      "  checkpoint: {every_steps: 500}\n"
      "  steps: 500\n");
  const ProcessResult result = launch(file);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_GT(summary()["eval"]["accuracy"].asDouble(), 0.98);
  expectNothingLeft();
}

// Two classes, of images that are red or blue, in files of different sizes and kinds. One file is
// none.
TEST_F(DataTest, AFolderOfImagesIsLearntAndAsked) {
  writeRedAndBlue();
  folder_.write("train/red/7.png", "<html>");
  const std::string train =
      "  model: {input: {shape: [8, 8, 3]}, layers: [flatten, dense: {units: 3}], loss: "
      "sparse_categorical_crossentropy, metrics: [accuracy]}\n"
      "  data:\n"
      "    train: {format: images, folder: train, max_bad_records: 1}\n"
      "    eval: {format: images, folder: eval}\n"
      "    augment: {flip_horizontal: true}\n"
      "    batch_size: 10\n"
      "  optimizer: {adam: {learning_rate: 0.01}}\n"
      "  checkpoint: {every_steps: 100}\n"
      "  steps: 100\n";
  const std::string file = write(train);
  const ProcessResult result = launch(file);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(summary()["eval"]["accuracy"].asDouble(), 1.0);
  EXPECT_NE((result.out + result.err)
                .find("train/red/7.png: this looks like a web page or XML, '<html>'; expected a "
                      "PNG, JPEG, WebP or BMP image"),
            std::string::npos)
      << result.err;
  for (const auto& [asked, classes] :
       std::map<std::string, std::string>{{"eval/red", "1111111111"}, {"eval/blue/82.png", "0"}}) {
    const ProcessResult predicted = runProcess(
        {binary("dtf-launch"), "predict", file, "--input", folder_.path() + "/" + asked, "--json"},
        seconds(20));
    ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
    std::string found;
    std::istringstream lines(predicted.out);
    for (std::string line; std::getline(lines, line);) found += Json::parse(line)["class"].dump();
    EXPECT_EQ(found, classes) << predicted.out;
    const Json first = Json::parse(predicted.out.substr(0, predicted.out.find('\n')));
    EXPECT_EQ(first["class_name"], classes == "0" ? "blue" : "red");
    EXPECT_TRUE(first["file"].asString().starts_with(folder_.path() + "/eval/")) << first;
  }
  const std::string model = folder_.path() + "/model.safetensors";
  EXPECT_EQ(runProcess({binary("dtf-launch"), "export", file, "--to", model}).exit_code, 0);
  EXPECT_NE(folder_.read("model.safetensors").find(R"([\"blue\",\"red\"])"), std::string::npos);

  // A class that is added later renumbers the others: every use of the model is refused.
  std::filesystem::create_directories(folder_.path() + "/train/amber");
  std::filesystem::copy(folder_.path() + "/train/red/0.png", folder_.path() + "/train/amber/0.png");
  std::filesystem::create_directories(folder_.path() + "/eval/amber");
  const std::string said =
      "class 0 is 'blue' of the 2 that the model was trained on, and 'amber' of the 3 of ";
  const ProcessResult again = launch(file);
  EXPECT_EQ(again.exit_code, 78) << again.err;
  EXPECT_NE(again.err.find(said), std::string::npos) << again.err;
  for (const std::string verb : {"eval", "predict"}) {
    const ProcessResult used = runProcess({binary("dtf-launch"), verb, file}, seconds(20));
    EXPECT_EQ(used.exit_code, 65) << used.err;
    EXPECT_NE(used.err.find(said), std::string::npos) << used.err;
  }
  expectNothingLeft();
}

// Each task may take 900 MiB of memory, and the images are 1.2 GB.
TEST_F(DataTest, MoreImagesThanMemoryAreTrainedOn) {
  constexpr uint32_t kCount = 1'600'000;
  const auto idx = [&](const std::string& name, std::string header, uint64_t bytes) {
    for (int shift = 24; shift >= 0; shift -= 8)
      header.insert(header.begin() + 4 + (24 - shift) / 8, static_cast<char>(kCount >> shift));
    const std::string path = folder_.write(name, header);
    std::filesystem::resize_file(path, header.size() + bytes);  // with a hole
  };
  using namespace std::string_literals;
  idx("images", "\0\0\x08\x03\0\0\0\x1c\0\0\0\x1c"s, uint64_t{kCount} * 28 * 28);
  idx("labels", "\0\0\x08\x01"s, kCount);
  const std::string file = write(
      "  model: {input: {shape: [28, 28]}, layers: [flatten, dense: {units: 10}], loss: "
      "sparse_categorical_crossentropy}\n"
      "  data: {train: {format: idx, images: images, labels: labels}}\n"
      "  steps: 20\n");
  std::string command = "ulimit -d 921600; exec";
  for (const std::string& word : launchCommand(file)) command += " '" + word + "'";
  const ProcessResult result = runProcess({"/bin/sh", "-c", command}, seconds(100));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(summary()["global_step"], 20);
  expectNothingLeft();
}

// Class 0 would be another class in the evaluation.
TEST_F(DataTest, AFolderWithOtherClassesIsRefusedBeforeTheStart) {
  for (const char* const name : {"train/a", "train/b", "eval/b"}) {
    std::filesystem::create_directories(std::filesystem::path(folder_.path()) / name);
    folder_.write(std::string(name) + "/1.png", data::pngOf(8, 8, data::plain(64, {1, 2, 3})));
  }
  const std::string file = write(
      "  model: {input: {shape: [8, 8]}, layers: [flatten, dense: {units: 2}], loss: "
      "sparse_categorical_crossentropy}\n"
      "  data:\n"
      "    train: {format: images, folder: train}\n"
      "    eval: {format: images, folder: eval}\n"
      "    batch_size: 1\n");
  const ProcessResult result = runProcess({binary("dtf-launch"), "check", file}, seconds(20));
  EXPECT_EQ(result.exit_code, 65) << result.err;
  EXPECT_NE(result.err.find("job.yaml:10:36: error: "), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("eval: its numbers have another meaning than the model's "),
            std::string::npos);
  EXPECT_NE(result.err.find(
                "class 0 is 'a' of the 2 that the model was trained on, and 'b' of the 1 of "),
            std::string::npos)
      << result.err;
}

// 590 examples are 15 steps of two workers with batches of 20, of which the last has 30 examples.
TEST_F(DataTest, EpochsAreStepsThatFollowFromTheData) {
  ClusterOptions options;
  options.mode = "sync";
  std::string file = writeCluster(options);
  const ProcessResult result = launch(file, {"--set", "train.data.augment={crop_padding: 1}"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(summary()["global_step"], 40);
  file = write(
      "  model: {input: {shape: [28, 28, 1]}, layers: [flatten, dense: {units: 10}], loss: mse}\n"
      "  data: {train: {format: digits, count: 590}, batch_size: 20}\n"
      "  epochs: 2\n");
  const ProcessResult epochs = launch(file);
  ASSERT_EQ(epochs.exit_code, 0) << epochs.err;
  EXPECT_EQ(summary()["global_step"], 30);
  EXPECT_NE((epochs.out + epochs.err).find("2 epochs"), std::string::npos) << epochs.out;
  expectNothingLeft();
}

TEST_F(DataTest, ARegressionThatIsShippedComesNearItsNoise) {
  const std::string root = std::getenv("DTF_SOURCE_ROOT");
  const ProcessResult result = launch(root + "/configs/clusters/local-sync.yaml",
                                      {"--run-dir", folder_.path() + "/runs/job", "--set",
                                       "train=" + root + "/configs/jobs/friedman_regression.yaml",
                                       "--set", "train.checkpoint={every_steps: 4000}"},
                                      seconds(100));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LT(summary()["eval"]["loss"].asDouble(), 1.2);
}

}  // namespace dtf::testing
