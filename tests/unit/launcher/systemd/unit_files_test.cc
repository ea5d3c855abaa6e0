#include "launcher/systemd/unit_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "common/base/checksum.h"
#include "common/base/error.h"
#include "tests/support/process.h"

namespace dtf::launcher {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class UnitFilesTest : public ::testing::Test {
 protected:
  UnitFilesTest() {
    fs::create_directory(run_dir_ / "logs");
    files_ = std::make_unique<UnitFiles>(
        run_dir_, [this](const std::string& text) { told_.push_back(text); });
    files_->expect("two", {"ps-1.1.log"}, false);
    files_->expect("three", {"worker-0.1.log"}, true);
  }
  std::string text(const std::string& name) const {
    std::ifstream in(run_dir_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const testing::TemporaryFolder folder_;
  const fs::path run_dir_ = folder_.path();
  std::vector<std::string> told_;
  std::unique_ptr<UnitFiles> files_;
};

TEST_F(UnitFilesTest, LogsGrowByWhatComesNext) {
  EXPECT_EQ(files_->kept("two", false).at("logs/ps-1.1.log"), 0u);
  files_->take("two", {"logs/ps-1.1.log", 0, "one\n"});
  files_->take("two", {"logs/ps-1.1.log", 9, "far ahead\n"});
  files_->take("two", {"logs/ps-1.1.log", 0, "again\n"});
  files_->take("two", {"logs/ps-1.1.log", 4, "two\n"});
  EXPECT_EQ(text("logs/ps-1.1.log"), "one\ntwo\n");
  EXPECT_EQ(files_->kept("two", false).at("logs/ps-1.1.log"), 8u);
}

TEST_F(UnitFilesTest, AHostSendsItsOwnFilesAlone) {
  for (const char* name : {"logs/worker-0.1.log", "summary.json", "logs/../x", "launch.json"})
    EXPECT_THROW(files_->take("two", {name, 0, "x"}), Error) << name;
  EXPECT_FALSE(fs::exists(run_dir_ / "summary.json"));
  files_->take("three", {"summary.json", 0, "{}"});
  EXPECT_EQ(text("summary.json"), "{}");
  EXPECT_EQ(files_->kept("three", false).at("summary.json"), checksumOf("{}"));
  EXPECT_FALSE(files_->kept("two", false).contains("summary.json"));
  files_->take("two", {"events/e", 0, "event"});
  EXPECT_EQ(files_->kept("two", true).at("events/e"), 5u);
  EXPECT_FALSE(files_->kept("two", false).contains("events/e"));
}

TEST_F(UnitFilesTest, ASummaryThatFoundNoRoomIsAskedForAgain) {
  fs::create_directory(run_dir_ / "summary.json");  // in the place of the file
  files_->take("three", {"summary.json", 0, "{}"});
  EXPECT_EQ(files_->kept("three", false).at("summary.json"), 0u);
  EXPECT_EQ(files_->bytes(), 0u);
  fs::remove(run_dir_ / "summary.json");
  files_->take("three", {"summary.json", 0, "{}"});
  EXPECT_EQ(files_->kept("three", false).at("summary.json"), checksumOf("{}"));
  EXPECT_EQ(files_->bytes(), 2u);
}

TEST_F(UnitFilesTest, TheSummaryOfALaunchThatHasEndedStays) {
  files_->take("three", {"summary.json", 0, "{\"outcome\": \"done\"}"});
  EXPECT_TRUE(files_->kept("three", false).contains("summary.json"));
  std::ofstream(run_dir_ / "summary.json") << "{\"outcome\": \"failed\", \"attempt\": 2}";
  EXPECT_FALSE(files_->kept("three", false).contains("summary.json"));
}

TEST_F(UnitFilesTest, ALogHasAMaximum) {
  const uint64_t size = UnitFiles::kLogBytesMax - 1;
  std::ofstream(run_dir_ / "logs/ps-1.1.log").close();
  fs::resize_file(run_dir_ / "logs/ps-1.1.log", size);  // sparse
  EXPECT_EQ(files_->kept("two", false).at("logs/ps-1.1.log"), size);
  files_->take("two", {"logs/ps-1.1.log", size, "ab"});
  files_->take("two", {"logs/ps-1.1.log", size + 2, "cd"});
  EXPECT_EQ(fs::file_size(run_dir_ / "logs/ps-1.1.log"), size + 2);
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_THAT(told_[0], HasSubstr("ps-1.1.log has 1.0 GiB: the rest is on two alone"));
  EXPECT_FALSE(files_->kept("two", false).contains("logs/ps-1.1.log")) << "it is asked for no more";
}

TEST_F(UnitFilesTest, OneLauncherBringsThemAtATime) {
  EXPECT_TRUE(files_->isMine());
  UnitFiles other(run_dir_, [](const std::string&) {});
  EXPECT_FALSE(other.isMine());
  EXPECT_TRUE(files_->isMine());
  files_.reset();
  EXPECT_TRUE(other.isMine());
}

TEST_F(UnitFilesTest, WhatCannotBeWrittenIsToldOnceAndComesAgain) {
  fs::create_directory(run_dir_ / "logs/ps-1.1.log");  // in the place of the file
  files_->take("two", {"logs/ps-1.1.log", 0, "one\n"});
  files_->take("two", {"logs/ps-1.1.log", 0, "one\n"});
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_THAT(told_[0], HasSubstr("ps-1.1.log"));
  fs::remove(run_dir_ / "logs/ps-1.1.log");
  files_->take("two", {"logs/ps-1.1.log", 0, "one\n"});
  EXPECT_EQ(text("logs/ps-1.1.log"), "one\n");
}

}  // namespace
}  // namespace dtf::launcher
