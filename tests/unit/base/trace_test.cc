#include "common/base/trace.h"
#include "common/base/json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "common/base/file.h"
#include "common/base/thread.h"

namespace dtf::trace {

namespace {

constexpr TaskId kTask{JobKind::kPs, 1};

// Stops tracing at its end: the process has one recorder.
class TraceTest : public ::testing::Test {
 protected:
  ~TraceTest() override { stop(); }

  static Json spans() {
    Json found = Json::array();
    const Json trace = Json::parse(json());
    for (const auto& event : trace["traceEvents"])
      if (event["ph"] == "X") found.push_back(event);
    return found;
  }
};

}  // namespace

// Traces of sampled steps.
class SamplingTest : public TraceTest {
 protected:
  ~SamplingTest() override { stopSampling(); }
  void sampleAs(JobKind job, uint64_t every) {
    sample({job, 0}, every, [this](SampledSpan&& span) { given_.push_back(std::move(span)); });
  }
  const SampledSpan& named(std::string_view name) const {
    for (const SampledSpan& span : given_)
      if (span.name == name) return span;
    static const SampledSpan kNone{};
    ADD_FAILURE() << "no span " << name;
    return kNone;
  }
  std::vector<SampledSpan> given_;
};

TEST_F(SamplingTest, EveryNthStepIsTheRootOfWhatHappensInIt) {
  sampleAs(JobKind::kWorker, 3);
  for (uint64_t step = 1; step < 9; ++step) {
    onStep(step);
    EXPECT_EQ(recording(), step % 3 == 0) << step;
    EXPECT_FALSE(recordingOps()) << "an operation is for a timeline";
    const Span batch("batch");
    const Span compute("compute");
  }
  ASSERT_EQ(given_.size(), 6u) << "of steps 3 and 6";
  const SampledSpan &compute = given_[0], &batch = given_[1], &root = given_[2];
  EXPECT_STREQ(root.name, "step");
  EXPECT_EQ(root.parent, SpanId{});
  EXPECT_EQ(root.step, 3u);
  EXPECT_STREQ(batch.name, "batch");
  EXPECT_EQ(batch.parent, root.self.span);
  EXPECT_STREQ(compute.name, "compute");
  EXPECT_EQ(compute.parent, batch.self.span);
  for (const SampledSpan* each : {&compute, &batch}) {
    EXPECT_EQ(each->self.trace, root.self.trace);
    EXPECT_FALSE(each->is_parent_remote);
    EXPECT_GE(each->begin, root.begin);
    EXPECT_LE(each->end, root.end);
  }
  EXPECT_NE(given_[5].self.trace, root.self.trace) << "another step is another trace";
}

TEST_F(SamplingTest, SeveralBatchesOfAStepAreOneRoot) {
  sampleAs(JobKind::kWorker, 1);
  onStep(1);
  onStep(1);
  EXPECT_TRUE(given_.empty());
  endStep();
  ASSERT_EQ(given_.size(), 1u);
  EXPECT_FALSE(recording());
  endStep();
  EXPECT_EQ(given_.size(), 1u) << "it has ended";
}

TEST_F(SamplingTest, WhatAPsDoesBelongsToTheSpanThatAskedForIt) {
  sampleAs(JobKind::kWorker, 1);
  onStep(7);
  std::string traceparent;
  {
    const Span push("push");
    traceparent = traceparentHere();
  }
  const SampledSpan push = named("push");
  stopSampling();
  given_.clear();
  sampleAs(JobKind::kPs, 1);
  EXPECT_EQ(traceparentHere(), "");
  onRequest(7, traceparent);
  EXPECT_TRUE(recording());
  const Begun waited = begin();
  onRequest(8, "");  // of a worker that isn't traced
  EXPECT_FALSE(recording());
  end("wait", waited, "worker/0");
  const SampledSpan& wait = named("wait");
  EXPECT_EQ(wait.self.trace, push.self.trace);
  EXPECT_EQ(wait.parent, push.self.span);
  EXPECT_TRUE(wait.is_parent_remote);
  EXPECT_EQ(wait.step, 7u);
  EXPECT_EQ(wait.detail, "worker/0");
  onRequest(9, traceparentOf(SpanContext::newTrace()));
  end("reply", beside(waited));
  EXPECT_EQ(named("reply").parent, push.self.span) << "whoever has asked meanwhile";
  EXPECT_NE(named("reply").self.span, wait.self.span);
  EXPECT_FALSE(beside(Begun{}).recorded()) << "nothing beside what was not recorded";
  for (const SampledSpan& span : given_) EXPECT_STRNE(span.name, "step") << "a ps has none";
}

TEST_F(SamplingTest, ARequestToAWorkersShardIsNoPartOfTheWorkersOwnStep) {
  sampleAs(JobKind::kWorker, 2);
  onStep(2);
  const SpanContext other = SpanContext::newTrace();
  Thread("shard-data", [&other] {
    onRequest(4, traceparentOf(other));
    { const Span apply("apply"); }
    onRequest(5, "");
    { const Span apply("not sampled"); }
  }).join();
  { const Span compute("compute"); }
  endStep();
  const SampledSpan& apply = named("apply");
  EXPECT_EQ(apply.self.trace, other.trace);
  EXPECT_EQ(apply.parent, other.span);
  EXPECT_TRUE(apply.is_parent_remote);
  EXPECT_EQ(apply.step, 4u);
  const SampledSpan& compute = named("compute");
  EXPECT_EQ(compute.self.trace, named("step").self.trace);
  EXPECT_EQ(compute.step, 2u);
  EXPECT_FALSE(compute.is_parent_remote);
  EXPECT_EQ(given_.size(), 3u) << "nothing of the request that isn't sampled";
}

TEST_F(SamplingTest, ATraceparentThatCantBeReadIsNone) {
  sampleAs(JobKind::kPs, 1);
  onRequest(1, "00-nonsense");
  EXPECT_FALSE(recording());
}

TEST_F(SamplingTest, ATimelineGoesOnBesideIt) {
  start(kTask, 2);
  sampleAs(JobKind::kWorker, 1);
  for (uint64_t step = 1; step < 4; ++step) {
    onStep(step);
    EXPECT_EQ(recordingOps(), step == 2);
    const Span span("work");
  }
  ASSERT_EQ(spans().size(), 1u);
  EXPECT_EQ(spans()[0]["args"]["step"], 2);
  EXPECT_EQ(std::count_if(given_.begin(), given_.end(),
                          [](const SampledSpan& span) { return span.name == std::string("work"); }),
            3);
}

TEST_F(SamplingTest, AfterItsEndNothingIsGiven) {
  sampleAs(JobKind::kWorker, 1);
  onStep(1);
  const Begun begun = begin();
  stopSampling();
  EXPECT_EQ(given_.size(), 1u) << "the step";
  end("late", begun);
  onStep(2);
  EXPECT_EQ(given_.size(), 1u);
  EXPECT_EQ(traceparentHere(), "");
}

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
  const Json trace = Json::parse(json());
  const Json span = spans().at(0);
  EXPECT_DOUBLE_EQ(span["ts"].asDouble(), 2000.5);
  EXPECT_DOUBLE_EQ(span["dur"].asDouble(), 7);
  EXPECT_EQ(span["args"]["detail"], "worker/0");
  bool named = false;
  for (const auto& event : trace["traceEvents"])
    if (event["name"] == "process_name" && event["pid"] == span["pid"])
      named = event["args"]["name"] == "ps/1";
  EXPECT_TRUE(named) << trace;
  EXPECT_EQ(trace["otherData"]["task"], "ps/1");
  EXPECT_GT(trace["otherData"]["clock_anchor"]["unix_us"].asInt64(), 0);
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
  EXPECT_EQ(Json::parse(json())["otherData"]["spans_dropped"], 3);
}

TEST_F(TraceTest, SavesAFileOfTheTasksName) {
  start(kTask, 1);
  onStep(1);
  add("x", TimePoint{}, TimePoint{});
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "traces";
  save(folder);
  const auto trace = Json::parse(readFile(folder / "ps-1.json", 1 << 20));
  EXPECT_EQ(trace["otherData"]["step"], 1);
  // The same job, which goes on behind that step.
  start(kTask, 1);
  onStep(7);
  save(folder);
  EXPECT_EQ(Json::parse(readFile(folder / "ps-1.json", 1 << 20)), trace);
  std::filesystem::remove_all(folder);
}

}  // namespace dtf::trace
