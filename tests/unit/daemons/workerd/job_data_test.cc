#include "daemons/workerd/job_data.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/error.h"
#include "tests/support/temporary_files.h"
#include "tests/support/train_file.h"

namespace dtf::workerd {
namespace {

constexpr const char* kTable =
    "model: {input: {shape: [1]}, layers: [dense: {units: 2}], loss: mse}\n"
    "data:\n"
    "  batch_size: 1\n"
    "  train: {format: csv, files: [t.csv], label_column: y}\n"
    "  eval: {format: csv, files: [e.csv], label_column: y}\n";

TEST(JobData, SaysWhatItReadsBeforeItDoes) {
  const testing::TemporaryFiles files;
  files.write("t.csv", "a,y\n1,0\n2,1\n");
  files.write("e.csv", "a,y\n1,0\n");
  files.write("train.yaml", kTable);
  const cluster::TrainSpec train = testing::readTrainFile("train.yaml");
  std::vector<std::string> said;
  const auto on_reading = [&said](const std::string& what) { said.push_back(what); };
  const JobData chief = openJobData(train, true, on_reading);
  EXPECT_EQ(chief.train->size(), 2);
  EXPECT_EQ(chief.eval->size(), 1);
  EXPECT_EQ(said,
            (std::vector<std::string>{"its data: t.csv, 12 B", "", "its data: e.csv, 8 B", ""}));
  const JobData other = openJobData(train, false, on_reading);
  EXPECT_EQ(other.train->size(), 2);
  EXPECT_EQ(other.eval, nullptr) << "another worker evaluates";
}

TEST(JobData, NothingIsSaidOfWhatIsDrawn) {
  const testing::TemporaryFiles files;
  files.write("train.yaml",
              "model: {input: {shape: [28, 28, 1]}, layers: [flatten, dense: {units: 10}], loss: "
              "mse}\ndata: {train: {format: digits, count: 200}}\n");
  const JobData data = openJobData(testing::readTrainFile("train.yaml"), true,
                                   [](const std::string& what) { ADD_FAILURE() << what; });
  EXPECT_EQ(data.train->size(), 200);
}

class PreparedTable : public ::testing::Test {
 protected:
  PreparedTable() {
    files_.write("t.csv", "a,y\n1,0\n3,1\n");
    files_.write("train.yaml", kTable);
    task_.job.run_dir = "run";
    task_.job.train = testing::readTrainFile("train.yaml");
    table().csv.numeric = {{"a"}};
    table().csv.numeric[0].standardize = true;
  }

  cluster::DatasetSpec& table() { return task_.job.train->data.train; }

  cluster::DatasetSpec prepare() {
    return preparedTable(task_, [this](const std::string& what) { said_.push_back(what); });
  }

  const testing::TemporaryFiles files_;
  cluster::TaskOptions task_;
  std::vector<std::string> said_;
};

TEST_F(PreparedTable, SaysWhatItLearnsFromBeforeItDoes) {
  EXPECT_EQ(prepare().csv.learned.value().features.at(0).mean, 2);
  EXPECT_EQ(said_, (std::vector<std::string>{"its data: t.csv, 12 B", ""}));
}

TEST_F(PreparedTable, NothingIsSaidOfATableThatLearnsNothing) {
  table().csv.numeric[0].standardize = false;
  EXPECT_FALSE(prepare().csv.learned.has_value());
  EXPECT_TRUE(said_.empty());
}

// The worker reports it to the ps as any other error of the data.
TEST_F(PreparedTable, AWordAmongTheNumbersIsAnErrorOfTheData) {
  files_.write("t.csv", "a,y\nx,0\n");
  try {
    prepare();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
  }
  EXPECT_EQ(said_, std::vector<std::string>{"its data: t.csv, 8 B"});
}

}  // namespace
}  // namespace dtf::workerd
