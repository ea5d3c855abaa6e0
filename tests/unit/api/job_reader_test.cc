#include <dtf/job_reader.h>
#include <gmock/gmock.h>

#include <cstdio>
#include <fstream>

#include "tests/unit/api/errors.h"

namespace dtf::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// A file of a job that nobody has started.
class ApiJobReader : public ::testing::Test {
 protected:
  std::string write(const std::string& cluster, const std::string& more = "") {
    std::ofstream(path_) << "job: unstarted\nrun_dir: " << ::testing::TempDir()
                         << "/no-run\ncluster: " << cluster << "\ntrain:\n"
                         << more
                         << "  model: {input: {shape: [4]}, layers: [dense: {units: 2}], "
                            "loss: sparse_categorical_crossentropy}\n"
                            "  data: {train: {format: csv, files: [t.csv], label_column: k, "
                            "class_names: [a, b]}, batch_size: 2}\n  steps: 2\n";
    return path_;
  }
  ~ApiJobReader() override { std::remove(path_.c_str()); }

  const std::string path_ = ::testing::TempDir() + "job_reader_test.yaml";
};

TEST_F(ApiJobReader, NothingIsReadBeforeAVersionIsTaken) {
  const JobReader reader(write("{ps: [\"localhost:auto\"], worker: [\"localhost:auto\"]}"));
  EXPECT_THAT(reader.variables(), IsEmpty());
  EXPECT_THAT(refusal([&] { reader.read("dense/kernel"); }),
              AllOf(StartsWith("2: "), HasSubstr("no version of the parameters is taken yet")));
}

TEST_F(ApiJobReader, AJobThatNobodyHasStartedIsToldSo) {
  JobReader reader(write("{ps: [\"localhost:auto\"], worker: [\"localhost:auto\"]}"));
  EXPECT_THAT(refusal([&] { reader.take(0.2); }),
              AllOf(StartsWith("69: "), HasSubstr("ps/0 has the port `auto`"),
                    HasSubstr("start the job first")));
  EXPECT_THAT(refusal([&] { reader.take(-1); }), StartsWith("2: "));
  EXPECT_EQ(reader.status(), "{\"ps/0\":null,\"worker/0\":null}");
}

TEST_F(ApiJobReader, AJobThatNobodyCanConnectToIsRefused) {
  EXPECT_THAT(refusal([&] { JobReader(write("{worker: [\"localhost:auto\"]}")); }),
              AllOf(StartsWith("78: "), HasSubstr("runs in one process")));
  EXPECT_THAT(refusal([&] {
                JobReader(write("{ps: [\"localhost:auto\"], worker: [\"localhost:auto\"]}",
                                "  placement: auto\n"));
              }),
              AllOf(StartsWith("78: "), HasSubstr("`placement: auto`")));
  EXPECT_THAT(refusal([&] { JobReader("/no/such.yaml"); }), StartsWith("78: "));
}

}  // namespace
}  // namespace dtf::testing
