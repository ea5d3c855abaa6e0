#include "common/base/step_trace.h"
#include "common/base/json.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/thread.h"
#include "common/base/trace.h"

namespace dtf::trace {

namespace {

using Kind = StepSpan::Kind;

constexpr TaskId kSteppedTask{JobKind::kPs, 1};

TimePoint at(int64_t ns) {
  return TimePoint(Duration(ns));
}

StepSpan span(Kind kind, std::string name, int64_t begin, int64_t end) {
  return {.kind = kind, .name = std::move(name), .detail = {}, .begin = at(begin), .end = at(end)};
}

// Returns the timeline's spans of that name.
std::vector<Json> named(const Json& timeline, const std::string& name) {
  std::vector<Json> found;
  for (const auto& event : timeline["traceEvents"])
    if (event["ph"] == "X" && event["name"] == name) found.push_back(event);
  return found;
}

std::string threadOf(const Json& timeline, const Json& span) {
  for (const auto& event : timeline["traceEvents"])
    if (event["name"] == "thread_name" && event["pid"] == span["pid"] &&
        event["tid"] == span["tid"])
      return event["args"].stringAt("name");
  return "";
}

}  // namespace

TEST(StepTraceTest, OpsBelongToThePieceThatTheirThreadRuns) {
  StepTrace trace(kSteppedTask);
  EXPECT_FALSE(recordingOps());
  {
    Thread device("the device", [&trace] {
      const PieceScope scope(&trace, 3);
      EXPECT_TRUE(recordingOps());
      const TimePoint begin = now();
      addOp("MatMul layer/product", begin, now());
    });
    const PieceScope untraced(nullptr, 0);
    EXPECT_FALSE(recordingOps()) << "of another thread";
  }
  EXPECT_FALSE(recording()) << "it is no step of this process";
  const TaskTrace done = trace.finish();
  ASSERT_EQ(done.spans.size(), 2u);
  EXPECT_EQ(done.spans[0].name, "layer/product") << "as in the graph";
  EXPECT_EQ(done.spans[0].detail, "MatMul");
  EXPECT_EQ(done.spans[0].kind, Kind::kOp);
  EXPECT_EQ(done.spans[1].name, "piece 3");
  EXPECT_EQ(done.spans[1].kind, Kind::kPiece);
  EXPECT_LE(done.spans[1].begin, done.spans[0].begin);
  EXPECT_GE(done.spans[1].end, done.spans[0].end);
  EXPECT_EQ(done.tracks, std::vector<std::string>{"the device"});
  EXPECT_LE(done.begin, done.spans[1].begin);
  EXPECT_GE(done.end, done.spans[1].end);
}

TEST(StepTraceTest, TheInnermostPieceOfAThreadCounts) {
  StepTrace outer(kSteppedTask), inner(kSteppedTask);
  {
    const PieceScope first(&outer, 0);
    {
      const PieceScope second(&inner, 0);
      addOp("Relu of the inner", at(1), at(2));
    }
    addOp("Relu of the outer", at(1), at(2));
  }
  EXPECT_EQ(StepTrace::here(), nullptr);
  EXPECT_EQ(inner.finish().spans[0].name, "of the inner");
  EXPECT_EQ(outer.finish().spans[0].name, "of the outer");
}

TEST(StepTraceTest, WhatIsBeyondItsBoundsIsDroppedAndCounted) {
  StepTrace many(kSteppedTask);
  for (size_t i = 0; i < kStepSpansMax + 7; ++i) many.add(span(Kind::kOp, "op", 1, 2));
  const TaskTrace of_many = many.finish();
  EXPECT_EQ(of_many.spans.size(), kStepSpansMax);
  EXPECT_EQ(of_many.dropped, 7u);
  StepTrace wordy(kSteppedTask);
  for (int i = 0; i < 3; ++i)
    wordy.add(span(Kind::kOp, std::string(kStepTextBytesMax / 2, 'x'), 1, 2));
  const std::vector<TaskTrace> both = {of_many, wordy.finish()};
  EXPECT_EQ(both[1].spans.size(), 2u);
  EXPECT_EQ(both[1].dropped, 1u);
  const auto about = Json::parse(timelineJson(4, both))["otherData"];
  EXPECT_EQ(about["spans_dropped"], 8u);
  EXPECT_EQ(about["tasks"][0]["spans_dropped"], 7u);
}

TEST(StepTraceTest, WhatComesLateHasNoEffect) {
  StepTrace trace(kSteppedTask);
  EXPECT_TRUE(trace.finish().spans.empty());
  trace.add(span(Kind::kSend, "_Send w:0", 1, 2));
}

TEST(StepTraceTest, WaitsThatOverlapAreShownBesideEachOther) {
  StepTrace trace(kSteppedTask);
  trace.add(span(Kind::kReceive, "_Recv b:0", 100, 300));
  trace.add(span(Kind::kReceive, "_Recv a:0", 100, 400));
  trace.add(span(Kind::kReceive, "_Recv c:0", 350, 500));
  trace.add(span(Kind::kSend, "_Send d:0", 100, 400));
  const std::vector<TaskTrace> traces = {trace.finish()};
  const auto timeline = Json::parse(timelineJson(1, traces));
  const auto thread = [&](const char* name) {
    return threadOf(timeline, named(timeline, name).at(0));
  };
  EXPECT_EQ(thread("_Recv a:0"), "rendezvous");
  EXPECT_EQ(thread("_Recv b:0"), "rendezvous 2");
  EXPECT_EQ(thread("_Recv c:0"), "rendezvous 2") << "b has ended";
  EXPECT_EQ(thread("_Send d:0"), "transfers");
}

TEST(StepTraceTest, TheTimelineHasEachTaskOnOneClock) {
  std::vector<TaskTrace> traces;
  for (const TaskId task : {TaskId{JobKind::kWorker, 0}, kSteppedTask}) {
    StepTrace trace(task);
    trace.add({.kind = Kind::kReceive,
               .name = "_Recv w:0",
               .detail = "12 bytes: a;b;w:0;0:0",
               .begin = at(2000),
               .end = at(5500)});
    traces.push_back(trace.finish());
  }
  traces.push_back({.task = {JobKind::kWorker, 1}, .is_given = false});
  const auto timeline = Json::parse(timelineJson(7, traces));
  const auto waits = named(timeline, "_Recv w:0");
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_NE(waits[0]["pid"], waits[1]["pid"]);
  EXPECT_EQ(waits[0]["cat"], "receive");
  EXPECT_EQ(waits[0]["ts"], 2.0) << "microseconds";
  EXPECT_EQ(waits[0]["dur"], 3.5);
  EXPECT_EQ(waits[0]["args"]["step"], 7u);
  EXPECT_EQ(waits[0]["args"]["detail"], "12 bytes: a;b;w:0;0:0");
  EXPECT_EQ(named(timeline, "run part").size(), 2u);
  const auto& tasks = timeline["otherData"]["tasks"];
  ASSERT_EQ(tasks.size(), 3u);
  EXPECT_EQ(tasks[1]["task"], "ps/1");
  EXPECT_EQ(tasks[1]["traced"], true);
  EXPECT_GT(tasks[1]["clock_anchor"]["unix_us"].asDouble(), 0);
  EXPECT_EQ(tasks[2]["task"], "worker/1");
  EXPECT_EQ(tasks[2]["traced"], false) << "its version gives no trace";
}

}  // namespace dtf::trace
