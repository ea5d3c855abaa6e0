#include "common/train/data_check.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/data/image_files.h"
#include "tests/unit/data/npy_files.h"
#include "tests/unit/train/job_check_fixture.h"

namespace dtf::train {
namespace {

// Jobs with files that are right as far as a check without reading them to the end can show.
class DataCheckTest : public JobCheckTest {
 protected:
  // Returns the first line of the mistakes at the files' ends; empty: none.
  std::string mistakesOfData(const std::string& train, ErrorCode code = ErrorCode::kBadData) {
    files_.write("c.yaml", "cluster: {ps: [a:1], worker: [b:1]}\ntrain:\n" + train);
    yaml::Report report;
    const cluster::JobSpec job = cluster::loadCluster("c.yaml", {}, report);
    checkJob(job, {kHost, {}}, report);
    EXPECT_TRUE(report.empty()) << "that shows before";
    counts_ =
        checkContents(job, report, [this](const std::string& what) { said_.push_back(what); });
    try {
      report.throwIfAny();
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.message();
      return firstLine(error.message());
    }
  }

  // Two columns, one of them the class.
  static std::string tableJob(const std::string& data, int batch_size = 1) {
    return "  model: {input: {shape: [1]}, layers: [dense: {units: 2, name: d}], loss: "
           "sparse_categorical_crossentropy}\n  data: {batch_size: " +
           std::to_string(batch_size) + ", " + data + "}\n";
  }
  static std::string table(const std::string& file) {
    return "{format: csv, files: [" + file + "], label_column: y}";
  }

  DataCounts counts_;
  std::vector<std::string> said_;
};

TEST_F(DataCheckTest, ExamplesAreCounted) {
  files_.write("t.csv", "a,y\n1,0\n2,1\n3,1\n");
  files_.write("e.csv", "a,y\n1,0\n");
  EXPECT_EQ(mistakesOfData(tableJob("train: " + table("t.csv") + ", eval: " + table("e.csv"))), "");
  EXPECT_EQ(counts_.train, 3);
  EXPECT_EQ(counts_.eval, 1);
  EXPECT_TRUE(said_.empty()) << "it took no time";
  EXPECT_EQ(mistakesOfData(std::string(kSoftmax) +
                           "  data: {train: {format: digits, count: 50}, batch_size: 5}\n"),
            "");
  EXPECT_EQ(counts_.train, 50);
  EXPECT_FALSE(counts_.eval.has_value()) << "there are none";
}

TEST_F(DataCheckTest, ALabelBeyondTheUnitsIsShownAtTheKeyThatNamesTheFile) {
  files_.write("t.csv", "a,y\n1,0\n2,2\n");
  EXPECT_EQ(
      mistakesOfData(tableJob("train: " + table("t.csv"))),
      "c.yaml:4:54: error: t.csv: example 1 has label 2, but layer 'd' has 2 units (labels 0 to "
      "1): give it at least 3 units, or use other labels");
  EXPECT_FALSE(counts_.train.has_value());
}

TEST_F(DataCheckTest, AnEvaluationIsJudgedToo) {
  files_.write("t.csv", "a,y\n1,0\n2,1\n");
  files_.write("e.csv", "a,y\n1,7\n");
  const std::string mistake =
      mistakesOfData(tableJob("train: " + table("t.csv") + ", eval: " + table("e.csv")));
  EXPECT_NE(mistake.find("e.csv: example 0 has label 7"), std::string::npos) << mistake;
  EXPECT_EQ(counts_.train, 2);
}

TEST_F(DataCheckTest, RecordsThatAreNoneAreFound) {
  files_.write("t.csv", "a,y\n");
  EXPECT_NE(mistakesOfData(tableJob("train: " + table("t.csv")))
                .find("t.csv: there is no record behind the header"),
            std::string::npos);
  files_.write("t.csv", "a,y\n1,cat\n");
  EXPECT_EQ(mistakesOfData(tableJob("train: " + table("t.csv"))),
            "c.yaml:4:54: error: t.csv: none of 1 records can be read:");
}

TEST_F(DataCheckTest, ABatchThatATableCannotFill) {
  files_.write("t.csv", "a,y\n1,0\n");
  const std::string mistake =
      mistakesOfData(tableJob("train: " + table("t.csv"), 2), ErrorCode::kBadConfig);
  EXPECT_NE(mistake.find("batch_size is 2, but there is 1 example in t.csv: choose a batch_size "
                         "from 1 to 1"),
            std::string::npos)
      << mistake;
}

TEST_F(DataCheckTest, AFileThatIsCutOff) {
  const std::string images =
      data::gzipped(data::idxHeader(data::kImagesMagic, {4, 28, 28}) + std::string(4 * 784, 'x'));
  files_.write("i.gz", images.substr(0, images.size() - 9));
  writeLabels("l", 4, 1);
  const std::string mistake =
      mistakesOfData(std::string(kSoftmax) +
                     "  data: {batch_size: 2, train: {format: idx, images: i.gz, labels: l}}\n");
  EXPECT_EQ(mistake,
            "c.yaml:4:54: error: i.gz: damaged gzip data: the file ends in the middle of the "
            "stream; fetch it again");
}

TEST_F(DataCheckTest, NumbersBeyondTheVocabularyAreNamed) {
  files_.write("x.npy", data::npyOf<int32_t>("<i4", "(2, 2)", {0, 1, 2, 30}));
  files_.write("y.npy", data::npyOf<int32_t>("<i4", "(2,)", {0, 1}));
  const auto job = [](int vocabulary) {
    return "  model:\n    input: {shape: [2]}\n    layers: [embedding: {input_dim: " +
           std::to_string(vocabulary) +
           ", output_dim: 3, name: words}, flatten, dense: {units: 2}]\n"
           "    loss: sparse_categorical_crossentropy\n"
           "  data: {batch_size: 2, train: {format: npy, features: x.npy, features_as: indices, "
           "labels: y.npy}}\n";
  };
  EXPECT_EQ(mistakesOfData(job(31)), "");
  EXPECT_EQ(mistakesOfData(job(30)),
            "c.yaml:7:56: error: x.npy: example 1 has 30, but layer 'words' has a vocabulary of 30 "
            "(0 to 29): give it a larger one, or use other data");
}

TEST_F(DataCheckTest, ImagesAreCountedAndNotDecoded) {
  for (const char* name : {"cats", "dogs"}) {
    std::filesystem::create_directories(std::string("photos/") + name);
    files_.write(std::string("photos/") + name + "/1.png", "no image");
  }
  EXPECT_EQ(mistakesOfData(
                "  model: {input: {shape: [4, 4, 3]}, layers: [flatten, dense: {units: 2}], loss: "
                "sparse_categorical_crossentropy}\n  data: {batch_size: 2, train: {format: images, "
                "folder: "
                "photos}}\n"),
            "");
  EXPECT_EQ(counts_.train, 2);
}

}  // namespace
}  // namespace dtf::train
