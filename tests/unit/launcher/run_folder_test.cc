#include "launcher/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "common/base/error.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

class RunFolderTest : public ::testing::Test {
 protected:
  RunFolderTest() {
    std::string pattern = (fs::temp_directory_path() / "dtf-run-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~RunFolderTest() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(RunFolderTest, OneLauncherAtATimeAndTheOtherIsNamed) {
  {
    RunFolder first(folder_ / "run");
    first.record({"job", 4242, {}});
    try {
      RunFolder second(folder_ / "run");
      FAIL() << "must throw";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
      EXPECT_THAT(error.message(), ::testing::HasSubstr("dtf-launch, pid 4242"));
    }
  }
  RunFolder third(folder_ / "run");
}

TEST_F(RunFolderTest, WhoRunsInAFolderIsNamed) {
  checkNothingRuns(folder_);
  RunFolder held(folder_);
  held.record({"job", 4242, {}});
  try {
    checkNothingRuns(folder_);
    FAIL() << "must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("already, pid 4242"));
  }
}

TEST_F(RunFolderTest, SummaryOfAnEarlierRunGoes) {
  std::ofstream(folder_ / "summary.json") << "old";
  const RunFolder run(folder_);
  EXPECT_FALSE(fs::exists(folder_ / "summary.json"));
  EXPECT_TRUE(fs::is_directory(run.logs()));
}

TEST_F(RunFolderTest, FolderThatCantBeMadeIsAnError) {
  std::ofstream(folder_ / "file") << "";
  try {
    RunFolder run(folder_ / "file" / "run");
    FAIL() << "must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCannotWrite);
  }
}

}  // namespace dtf::launcher
