#include "common/base/trace.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/base/file.h"

namespace dtf::trace {

namespace {

constexpr TaskId kTask{JobKind::kPs, 1};

// Ends with no trace wanted: the recorder is the process's.
class TraceTest : public ::testing::Test {
 protected:
  ~TraceTest() override { stop(); }

  static nlohmann::json spans() {
    nlohmann::json found = nlohmann::json::array();
    const nlohmann::json trace = nlohmann::json::parse(json());
    for (const auto& event : trace["traceEvents"])
      if (event["ph"] == "X") found.push_back(event);
    return found;
  }
};

}  // namespace

TEST_F(TraceTest, RecordsTheWantedStepAlone) {
  start(kTask, 5);
  for (uint64_t step = 3; step < 9; ++step) {
    onStep(step);
    EXPECT_EQ(recording(), step == 5) << step;
    const Span span("work");
  }
  onStep(5);
  EXPECT_FALSE(recording()) << "a step that is over is over";
  ASSERT_EQ(spans().size(), 1u);
  EXPECT_EQ(spans()[0]["name"], "work");
  EXPECT_EQ(spans()[0]["args"]["step"], 5);
}

TEST_F(TraceTest, AStepThatWasPassedIsNotWaitedFor) {
  start(kTask, 5);
  onStep(6);
  onStep(5);
  EXPECT_FALSE(recording());
}

TEST_F(TraceTest, WithoutAStartNothingIsRecordedOrWritten) {
  onStep(1);
  EXPECT_FALSE(recording());
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "no-trace";
  save(folder);
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(TraceTest, SpansAreMicrosecondsOfTheMonotonicClockWithTaskAndThread) {
  start(kTask, 1);
  onStep(1);
  const TimePoint begin{std::chrono::nanoseconds(2'000'500)};
  add("apply", begin, begin + std::chrono::microseconds(7), "worker/0");
  const nlohmann::json trace = nlohmann::json::parse(json());
  const nlohmann::json span = spans().at(0);
  EXPECT_DOUBLE_EQ(span["ts"].get<double>(), 2000.5);
  EXPECT_DOUBLE_EQ(span["dur"].get<double>(), 7);
  EXPECT_EQ(span["args"]["detail"], "worker/0");
  bool named = false;
  for (const auto& event : trace["traceEvents"])
    if (event["name"] == "process_name" && event["pid"] == span["pid"])
      named = event["args"]["name"] == "ps/1";
  EXPECT_TRUE(named) << trace;
  EXPECT_EQ(trace["otherData"]["task"], "ps/1");
  EXPECT_GT(trace["otherData"]["clock_anchor"]["unix_us"].get<int64_t>(), 0);
}

TEST_F(TraceTest, AnOperationIsShownByItsOwnName) {
  start(kTask, 5);
  onStep(5);
  const TimePoint at = now();
  addOp("Conv2D conv1/Conv2D", at, at);
  ASSERT_EQ(spans().size(), 1u);
  EXPECT_EQ(spans()[0]["name"], "Conv2D conv1/Conv2D");
  EXPECT_EQ(spans()[0]["cat"], "op");
}

TEST_F(TraceTest, TheNumberOfSpansIsBoundedAndTheRestCounted) {
  start(kTask, 1);
  onStep(1);
  for (size_t i = 0; i < kSpansMax + 3; ++i) add("x", TimePoint{}, TimePoint{});
  EXPECT_EQ(spans().size(), kSpansMax);
  EXPECT_EQ(nlohmann::json::parse(json())["otherData"]["spans_dropped"], 3);
}

TEST_F(TraceTest, SavesAFileOfTheTasksName) {
  start(kTask, 1);
  onStep(1);
  add("x", TimePoint{}, TimePoint{});
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "traces";
  save(folder);
  const auto trace = nlohmann::json::parse(readFile(folder / "ps-1.json", 1 << 20));
  EXPECT_EQ(trace["otherData"]["step"], 1);
  std::filesystem::remove_all(folder);
}

}  // namespace dtf::trace
