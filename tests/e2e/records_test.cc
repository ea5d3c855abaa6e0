// Each record of the data is used, or reported as left out: every reader, through training,
// evaluation and prediction.

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <sstream>

#include "tests/e2e/cluster_fixture.h"
#include "tests/unit/data/idx_files.h"
#include "tests/unit/data/image_files.h"
#include "tests/unit/data/npy_files.h"

namespace dtf::testing {

using std::chrono::seconds;

namespace {

constexpr size_t kRecords = 23;

// A data set of kRecords records, of which `bad` can't be read.
struct Records {
  std::string name;
  std::string spec;   // of data.train
  std::string input;  // of the model
  int units = 2;
  size_t bad = 0;
  std::string file = {};  // the same records without labels, for predict --input; empty: none
};

class RecordsTest : public ClusterTest {
 protected:
  Records csv() {
    std::string text = "a,b,class\n";
    for (size_t i = 0; i < kRecords; ++i)
      text += (i % 10 == 4 ? std::string("x") : std::to_string(i)) + ",1," +
              (i % 2 == 0 ? "even" : "odd") + "\n";
    folder_.write("t.csv", text);
    return {"csv",
            "{format: csv, files: [t.csv], label_column: class, class_names: [even, odd], "
            "max_bad_records: 5}",
            "[2]",
            2,
            2,
            "t.csv"};
  }

  // In two files without a header, words beside numbers, one record of two lines.
  Records categories() {
    std::string first, second;
    for (size_t i = 0; i < kRecords; ++i)
      (i < 9 ? first : second) += std::to_string(i % 2) + "," + (i == 12 ? "?" : "7") + ",w" +
                                  std::to_string(i) + (i == 3 ? ",\"a\nb\"\n" : ",c\n");
    folder_.write("first.csv", first);
    folder_.write("second.csv", second);
    folder_.write("all.csv", first + second);
    return {
        "categories",
        "{format: csv, files: [first.csv, second.csv], header: false, label_column: 1, "
        "feature_columns: [2], categorical_columns: {word: {columns: [3], hash_bucket_size: 50}}, "
        "max_bad_records: 1}",
        "[1]",
        2,
        1,
        "all.csv"};
  }

  Records npy() {
    writeArrays();
    return {"npy", "{format: npy, features: x.npy, labels: y.npy}", "[3]", 2, 0, "x.npy"};
  }

  Records npz() {
    const auto [x, y] = writeArrays();
    folder_.write("d.npz", data::zipOf({{"x.npy", x}, {"y.npy", y}}, true));
    return {"npz", "{format: npz, archive: d.npz, features: x, labels: y}", "[3]", 2, 0, "d.npz"};
  }

  Records idx() {
    std::string labels, pixels;
    for (size_t i = 0; i < kRecords; ++i) labels.push_back(static_cast<char>(i % 2));
    for (size_t i = 0; i < kRecords; ++i) pixels += std::string(4, static_cast<char>(i));
    folder_.write("idx-images", data::idxHeader(data::kImagesMagic, {kRecords, 2, 2}) + pixels);
    folder_.write("labels", data::idxHeader(data::kLabelsMagic, {kRecords}) + labels);
    return {"idx",       "{format: idx, images: idx-images, labels: labels}", "[2, 2, 1]", 2, 0,
            "idx-images"};
  }

  Records cifar10() {
    std::string bytes;
    for (size_t i = 0; i < kRecords; ++i)
      bytes += static_cast<char>(i % 10) + std::string(3072, static_cast<char>(i));
    folder_.write("a.bin", bytes.substr(0, size_t{3073} * 20));
    folder_.write("b.bin", bytes.substr(size_t{3073} * 20));
    return {"cifar10", "{format: cifar10, files: [a.bin, b.bin]}", "[32, 32, 3]", 10};
  }

  Records images() {
    for (size_t i = 0; i < kRecords; ++i) {
      const std::string folder = i % 2 == 0 ? "images/a/" : "images/b/";
      std::filesystem::create_directories(folder_.path() + "/" + folder);
      const std::vector<uint8_t> colour = {static_cast<uint8_t>(10 * i), 60, 90};
      folder_.write(
          folder + std::to_string(i) + ".png",
          i == 7 || i == 8 || i == 9 ? "no image" : data::pngOf(4, 4, data::plain(16, colour)));
    }
    return {"images", "{format: images, folder: images, max_bad_records: 3}", "[4, 4, 3]", 2, 3,
            "images"};
  }

  // How many examples the workers have trained on, by their last words.
  static uint64_t trainedOn(const std::string& log) {
    uint64_t examples = 0;
    std::istringstream lines(log);
    for (std::string line; std::getline(lines, line);) {
      const size_t at = line.find(" examples=");
      if (line.find("event=finished ") != std::string::npos && at != std::string::npos)
        examples += std::stoull(line.substr(at + 10));
    }
    return examples;
  }

  ProcessResult verb(const std::string& name, const std::string& file,
                     const std::vector<std::string>& more = {}) {
    std::vector<std::string> argv = {binary("dtf-launch"), name, file, "--json"};
    argv.insert(argv.end(), more.begin(), more.end());
    return runProcess(argv, seconds(30));
  }

  // `evaluated`: keys of data beside train.
  std::string writeJob(const Records& records, const std::string& name, const std::string& mode,
                       const std::string& evaluated) {
    return folder_.write(
        name + ".yaml",
        "job: " + name + "\nrun_dir: " + folder_.path() + "/runs/" + name +
            "\ncluster:\n  ps: [localhost:auto]\n  worker: [localhost:auto, localhost:auto]\n"
            "train:\n  model: {input: {shape: " +
            records.input + "}, layers: " + layersOf(records) +
            ", loss: sparse_categorical_crossentropy}\n  data:\n    train: " + records.spec +
            "\n    " + evaluated +
            "\n    batch_size: 4\n  optimizer: {gradient_descent: {learning_rate: 0.0001}}\n"
            "  replication: {mode: " +
            mode + "}\n  epochs: 3\n  checkpoint: {every_steps: 1000}\n");
  }

  static std::string layersOf(const Records& records) {
    const std::string last = "dense: {units: " + std::to_string(records.units) + "}]";
    if (records.name != "categories") return "[flatten, " + last;
    return "[dense: {units: 2, name: number}, embedding: {categories: word, input_dim: 50, "
           "output_dim: 2, combiner: sum}, concatenate: {with: [number]}, " +
           last;
  }

  void expectPredicted(const ProcessResult& predicted, size_t good) {
    ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
    std::istringstream lines(predicted.out);
    size_t all = 0, answered = 0;
    for (std::string line; std::getline(lines, line); ++all)
      if (Json::parse(line)["error"].isNull()) ++answered;
    EXPECT_EQ(all, kRecords) << predicted.out;
    EXPECT_EQ(answered, good) << predicted.out;
  }

  void expectEachUsedOrReported(const Records& records, const std::string& mode) {
    SCOPED_TRACE(records.name + ", " + mode);
    const std::string name = records.name + "-" + mode;
    const std::string file = writeJob(records, name, mode, "eval: " + records.spec);
    const ProcessResult trained = launch(file);
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    const size_t good = kRecords - records.bad;
    EXPECT_EQ(trainedOn(trained.err), 3 * good) << trained.err;
    const Json& left_out = summary(name)["left_out"];
    EXPECT_EQ(left_out.isNull() ? 0 : left_out["train"]["records"].asUint64(), records.bad);
    EXPECT_EQ(left_out.isNull() ? 0 : left_out["eval"]["records"].asUint64(), records.bad);

    const ProcessResult evaluated = verb("eval", file);
    ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
    const Json result = Json::parse(evaluated.out);
    EXPECT_EQ(result["examples"], good);
    EXPECT_EQ(result["left_out"], records.bad);

    expectPredicted(verb("predict", file), good);
    if (!records.file.empty())
      expectPredicted(verb("predict", file, {"--input", folder_.path() + "/" + records.file}),
                      good);
  }

  // Each is trained on, evaluated or reported.
  void expectEachOnOneSide(const Records& records) {
    const std::string name = records.name + "-split";
    SCOPED_TRACE(name);
    const std::string file = writeJob(records, name, "sync", "eval_split: 0.3");
    const ProcessResult trained = launch(file);
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    const Json& left_out = summary(name)["left_out"];
    EXPECT_EQ(left_out.isNull() ? 0 : left_out["train"]["records"].asUint64(), records.bad);
    const ProcessResult evaluated = verb("eval", file);
    ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
    const uint64_t examples = Json::parse(evaluated.out)["examples"].asUint64();
    EXPECT_GT(examples, 0u);
    EXPECT_EQ(trainedOn(trained.err) / 3 + examples + records.bad, kRecords);
    const ProcessResult predicted = verb("predict", file);
    EXPECT_EQ(std::ranges::count(predicted.out, '\n'), examples);
  }
  void expectEachUsedOrReported(const Records& records) {
    for (const std::string mode : {"sync", "async"}) expectEachUsedOrReported(records, mode);
  }

 private:
  std::pair<std::string, std::string> writeArrays() {
    std::vector<float> features(3 * kRecords);
    std::vector<int32_t> classes(kRecords);
    for (size_t i = 0; i < kRecords; ++i) {
      features[3 * i] = static_cast<float>(i);
      classes[i] = static_cast<int32_t>(i % 2);
    }
    const std::string count = std::to_string(kRecords);
    std::string x = data::npyOf("<f4", "(" + count + ", 3)", features);
    std::string y = data::npyOf("<i4", "(" + count + ",)", classes);
    folder_.write("x.npy", x);
    folder_.write("y.npy", y);
    return {std::move(x), std::move(y)};
  }
};

TEST_F(RecordsTest, OfATable) {
  expectEachUsedOrReported(csv());
}
TEST_F(RecordsTest, OfATableOfCategories) {
  expectEachUsedOrReported(categories());
}
TEST_F(RecordsTest, OfArrays) {
  expectEachUsedOrReported(npy());
}
TEST_F(RecordsTest, OfAnArchive) {
  expectEachUsedOrReported(npz());
}
TEST_F(RecordsTest, OfIdxFiles) {
  expectEachUsedOrReported(idx());
}
TEST_F(RecordsTest, OfCifar10) {
  expectEachUsedOrReported(cifar10());
}
TEST_F(RecordsTest, OfAFolderOfImages) {
  expectEachUsedOrReported(images());
}
TEST_F(RecordsTest, OfDataThatAreDivided) {
  for (const Records& records : {csv(), categories(), npy(), npz(), idx(), cifar10(), images()})
    expectEachOnOneSide(records);
}
// Of the names that a folder holds beside pictures'.
TEST_F(RecordsTest, FilesThatAreNoRecordsAreReported) {
  const Records records = images();
  folder_.write("images/a/notes.txt", "not a picture");
  const std::string file = writeJob(records, "job", "sync", "eval: " + records.spec);
  const ProcessResult trained = launch(file);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.err.find("event=files_left_out files=1 "), std::string::npos) << trained.err;
  const ProcessResult predicted = verb("predict", file, {"--input", folder_.path() + "/images/a"});
  EXPECT_NE(predicted.err.find("1 file without a picture's name"), std::string::npos)
      << predicted.err;
  EXPECT_EQ(
      verb("predict", file, {"--input", folder_.path() + "/images/b"}).err.find("picture's name"),
      std::string::npos);
}

}  // namespace
}  // namespace dtf::testing
