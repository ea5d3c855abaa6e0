#include "launcher/timeline.h"
#include "common/base/json.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "common/base/error.h"
#include "common/base/file.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

const std::vector<TaskId> kTimelineTasks = {
    {JobKind::kPs, 0}, {JobKind::kWorker, 0}, {JobKind::kWorker, 1}};

class TimelineTest : public ::testing::Test {
 protected:
  TimelineTest() { fs::create_directories(folder_ / "timeline"); }
  ~TimelineTest() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / "timeline" / name) << text;
  }

  const fs::path folder_ =
      fs::path(::testing::TempDir()) / ("timeline-test-" + std::to_string(::getpid()));
};

}  // namespace

TEST_F(TimelineTest, IsTheSpansOfAllTasksThatLeftSome) {
  write("ps-0.json", R"({"traceEvents": [{"name": "apply"}], "otherData": {"task": "ps/0"}})");
  write("worker-1.json",
        R"({"traceEvents": [{"name": "a"}, {"name": "b"}], "otherData": {"task": "worker/1"}})");
  EXPECT_EQ(mergeTimelines(folder_, kTimelineTasks), 2u);
  const auto merged = Json::parse(readFile(folder_ / "timeline.json", 1 << 20));
  ASSERT_EQ(merged["traceEvents"].size(), 3u);
  EXPECT_EQ(merged["traceEvents"][0]["name"], "apply");
  EXPECT_EQ(merged["otherData"]["tasks"][1]["task"], "worker/1");
}

TEST_F(TimelineTest, NothingIsWrittenOfNothing) {
  EXPECT_EQ(mergeTimelines(folder_, kTimelineTasks), 0u);
  EXPECT_FALSE(fs::exists(folder_ / "timeline.json"));
}

TEST_F(TimelineTest, SaysWhichFileIsNoTimeline) {
  for (const char* text : {"", "[]", "{}", R"({"traceEvents": 3, "otherData": 1})"}) {
    write("ps-0.json", text);
    try {
      mergeTimelines(folder_, kTimelineTasks);
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadData);
      EXPECT_NE(error.message().find("ps-0.json"), std::string::npos) << error.message();
    }
  }
}

TEST_F(TimelineTest, RemovesThoseOfAnEarlierRun) {
  write("ps-0.json", R"({"traceEvents": [], "otherData": {}})");
  mergeTimelines(folder_, kTimelineTasks);
  removeTimelines(folder_, kTimelineTasks);
  EXPECT_FALSE(fs::exists(folder_ / "timeline.json"));
  EXPECT_EQ(mergeTimelines(folder_, kTimelineTasks), 0u);
}

}  // namespace dtf::launcher
