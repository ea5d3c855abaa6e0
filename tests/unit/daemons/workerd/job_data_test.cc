#include "daemons/workerd/job_data.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

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

}  // namespace
}  // namespace dtf::workerd
