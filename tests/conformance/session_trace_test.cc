// Traces of a session's step, over tasks of this process and over tasks that serve.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "common/base/trace.h"
#include "common/engine/session.h"
#include "tests/conformance/session_harness.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::engine {
namespace {

using graph::Output;
using graph::testing::errorText;
using testing::floats;
using ::testing::HasSubstr;
using testing::kWorker0;
using testing::kWorker1;
using testing::nameOf;
using testing::SessionHarness;
using trace::StepSpan;
using trace::TaskTrace;
using Kind = StepSpan::Kind;

// x and first on worker/0, middle on worker/1, last on worker/0 again. True: over sockets.
class SessionTraceSuite : public ::testing::TestWithParam<bool> {
 protected:
  SessionTraceSuite() {
    const Output x = b_.placeholder("x", DType::kFloat32, {1});
    const Output first{b_.node("Scale", {x}, {{"factor", 2.0}}, "first")};
    Output middle;
    {
      const auto there = b_.deviceScope("/job:worker/task:1");
      middle = Output{b_.node("Tanh", {first}, {}, "middle")};
    }
    b_.node("Add", {first, middle}, {}, "last");
  }

  float run(Session& session, RunMetadata* metadata) const {
    const std::vector<Feed> feeds = {{"x", &zero_}};
    return session.run(feeds, std::vector<std::string>{"last"}, {}, metadata).at(0).as<float>()[0];
  }
  static const TaskTrace& of(TaskId task, const RunMetadata& metadata) {
    for (const TaskTrace& trace : metadata.traces)
      if (trace.task == task) return trace;
    static const TaskTrace kNone{};
    ADD_FAILURE() << "no trace of " << task.name();
    return kNone;
  }
  static const StepSpan& span(const TaskTrace& trace, Kind kind, const std::string& name) {
    for (const StepSpan& span : trace.spans)
      if (span.kind == kind && span.name == name) return span;
    static const StepSpan kNone{};
    ADD_FAILURE() << "no span " << name << " of " << trace.task.name();
    return kNone;
  }
  static size_t count(const TaskTrace& trace, Kind kind) {
    return static_cast<size_t>(std::count_if(trace.spans.begin(), trace.spans.end(),
                                             [&](const auto& each) { return each.kind == kind; }));
  }

  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
  SessionHarness harness_{GetParam(), {graph::fullDevice(kWorker0), graph::fullDevice(kWorker1)}};
  const Tensor zero_ = floats({1}, {0});
};

INSTANTIATE_TEST_SUITE_P(Tasks, SessionTraceSuite, ::testing::Bool(), nameOf);

TEST_P(SessionTraceSuite, AStepTellsWhatEachTaskComputedAndWaitedFor) {
  Session session(graph_, harness_.connect());
  RunMetadata metadata;
  for (int step = 0; step < 3; ++step) EXPECT_EQ(run(session, &metadata), 0);
  ASSERT_EQ(metadata.traces.size(), 2u);
  const TaskTrace &here = of(kWorker0, metadata), &there = of(kWorker1, metadata);
  const StepSpan &first = span(here, Kind::kOp, "first"), &last = span(here, Kind::kOp, "last");
  const StepSpan& middle = span(there, Kind::kOp, "middle");
  EXPECT_EQ(count(here, Kind::kOp), 2u) << "of the last step alone";
  EXPECT_EQ(count(there, Kind::kOp), 1u);
  // All spans have one clock, and the order of the data.
  const StepSpan& wait_there = span(there, Kind::kReceive, "_Recv first:0");
  const StepSpan& wait_here = span(here, Kind::kReceive, "_Recv middle:0");
  EXPECT_GE(wait_there.end, first.end);
  EXPECT_LE(wait_there.end, middle.begin);
  EXPECT_GE(wait_here.end, middle.end);
  EXPECT_LE(wait_here.end, last.begin);
  EXPECT_THAT(wait_here.detail, HasSubstr("4 bytes: /job:worker/replica:0/task:1/"));
  for (const TaskTrace* trace : {&here, &there}) {
    EXPECT_TRUE(trace->is_given);
    EXPECT_EQ(trace->dropped, 0u);
    for (const StepSpan& each : trace->spans) {
      EXPECT_GE(each.begin, trace->begin) << each.name;
      EXPECT_LE(each.end, trace->end) << each.name;
    }
  }
}

TEST_P(SessionTraceSuite, WhatLeavesForAnotherTaskIsTold) {
  Session session(graph_, harness_.connect());
  RunMetadata metadata;
  run(session, &metadata);
  const TaskTrace& here = of(kWorker0, metadata);
  if (!harness_.isRemote()) {
    EXPECT_EQ(count(here, Kind::kSend), 0u) << "a reference doesn't travel";
    return;
  }
  const StepSpan& sent = span(here, Kind::kSend, "_Send first:0");
  EXPECT_THAT(sent.detail, HasSubstr("to worker/1, 4 bytes: /job:worker/replica:0/task:0/"));
  EXPECT_GE(sent.begin, span(here, Kind::kOp, "first").end);
  EXPECT_GT(sent.end, sent.begin);
  EXPECT_EQ(count(of(kWorker1, metadata), Kind::kSend), 1u);
}

TEST_P(SessionTraceSuite, AStepThatNobodyAskedIsNotRecorded) {
  bool recorded = true;
  harness_.act("first", [&recorded] { recorded = trace::recordingOps(); });
  Session session(graph_, harness_.connect());
  run(session, nullptr);
  EXPECT_FALSE(recorded);
  RunMetadata metadata;
  run(session, &metadata);
  EXPECT_TRUE(recorded);
  run(session, nullptr);
  EXPECT_FALSE(recorded);
}

// Steps of two sessions on the same devices; one session is traced.
TEST_P(SessionTraceSuite, ATraceHasNothingOfOtherSteps) {
  Session traced(graph_, harness_.connect()), other(graph_, harness_.connect());
  std::thread beside([&] {
    for (int step = 0; step < 50; ++step) run(other, nullptr);
  });
  for (int step = 0; step < 50; ++step) {
    RunMetadata metadata;
    run(traced, &metadata);
    EXPECT_EQ(count(of(kWorker0, metadata), Kind::kOp), 2u);
    EXPECT_EQ(count(of(kWorker1, metadata), Kind::kOp), 1u);
  }
  beside.join();
}

TEST_P(SessionTraceSuite, AStepThatFailsTellsItsCauseAndNothingElse) {
  bool fails = true;
  harness_.act("middle", [&fails] {
    if (fails) throw Error(ErrorCode::kTrainingFailed, "fantasia!");
  });
  Session session(graph_, harness_.connect());
  RunMetadata metadata;
  EXPECT_EQ(errorText([&] { run(session, &metadata); }), "fantasia!");
  EXPECT_TRUE(metadata.traces.empty());
  fails = false;
  run(session, &metadata);
  EXPECT_EQ(metadata.traces.size(), 2u);
}

}  // namespace
}  // namespace dtf::engine
