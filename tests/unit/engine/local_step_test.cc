#include "common/engine/local_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <future>
#include <thread>

#include "common/graph/function.h"
#include "tests/unit/engine/devices.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::engine {
namespace {

using graph::Output;
using graph::testing::errorText;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Duration kNoTime = std::chrono::milliseconds(1);

// Programs of one device, which act on the queue "jobs" of float scalars.
class LocalStepTest : public ::testing::Test {
 protected:
  struct Graph {
    graph::Graph graph{graph::standardOps()};
    graph::Builder b{graph};
    Output jobs{b.node("FIFOQueue", {},
                       {{"component_types", std::string("float32")},
                        {"shapes", std::string("[]")},
                        {"capacity", int64_t{2}}},
                       "jobs")};
  };

  std::unique_ptr<PartProgram> compiled(Graph& made, const std::vector<Output>& fetches) {
    return std::make_unique<PartProgram>(made.graph, fetches, *devices_.all()[0].device,
                                         devices_.kernels(), EdgeNumbers{});
  }
  std::unique_ptr<PartProgram> taking() {
    Graph made;
    return compiled(made,
                    {made.b.scale({made.b.node("QueueDequeue", {made.jobs}, {}, "take")}, 10)});
  }
  std::unique_ptr<PartProgram> putting(float value) {
    Graph made;
    made.b.node("QueueEnqueue", {made.jobs, made.b.tanh(made.b.constant({}, value))}, {}, "put");
    return compiled(made, {});
  }
  // A loop that would take some hours; "begins" runs before it.
  std::unique_ptr<PartProgram> endless() {
    const graph::TensorSpec square{DType::kFloat32, {200, 200}};
    const auto product = graph::Function::build(graph::standardOps(), std::array{square},
                                                [](graph::Builder& b, std::span<const Output> p) {
                                                  return std::vector{b.matMul(p[0], p[0])};
                                                });
    Graph made;
    const Output begins{made.b.node("Tanh", {made.b.constant({200, 200}, 0)}, {}, "begins")};
    return compiled(made, made.b
                              .whileLoop({.carried = {begins},
                                          .sequences = {},
                                          .captured = {},
                                          .body = product,
                                          .cond = nullptr,
                                          .max_iterations = graph::Function::kIterationsMax})
                              .carried);
  }

  // Returns the fetched value, if there is one.
  float run(PartProgram& program, Duration at_most = kDurationMax, bool has_fetch = true) {
    std::vector<StepPart> parts;
    parts.push_back({&program, &device_, {}});
    for (size_t i = 0; i < program.queues().size(); ++i) parts[0].inputs.queues.push_back(&jobs_);
    runParts({++step_, Incarnation{7}}, parts, rendezvous_, watch_, at_most);
    return has_fetch ? *reinterpret_cast<const float*>(program.fetch(0, parts[0].inputs).data())
                     : 0;
  }
  // Returns the error of a step that times out when all of its actions have begun.
  std::string whyLate(PartProgram& program) {
    std::vector<StepPart> parts;
    parts.push_back({&program, &device_, {}});
    for (size_t i = 0; i < program.queues().size(); ++i) parts[0].inputs.queues.push_back(&jobs_);
    std::promise<StepEnd> end;
    const AbortStep abort =
        startParts({++step_, Incarnation{7}}, parts, {.rendezvous = &rendezvous_},
                   [&end](StepEnd how) { end.set_value(std::move(how)); });
    for (size_t i = 0; i < program.pieces().size(); ++i) {  // each may follow the previous one
      std::promise<void> has_run;
      device_.post([&has_run] { has_run.set_value(); });
      has_run.get_future().get();
    }
    abort(Error(ErrorCode::kDeadline, "late"));
    const StepEnd how = end.get_future().get();
    rendezvous_.end(step_);
    return std::get<Error>(how).message();
  }
  void put(float value) { run(*putting(value), kDurationMax, false); }
  testing::Devices devices_{testing::cpusOfWorker0(1)};
  const std::shared_ptr<ByteBudget> budget_ = ByteBudget::create(1 << 20, "worker/0");
  FifoQueue jobs_{"jobs", {{{DType::kFloat32, {}}}, 2}, budget_};
  Rendezvous rendezvous_;
  DeviceThread device_{"cpu:0"};
  StepWatch watch_;
  std::atomic<uint64_t> step_ = 0;
};

TEST_F(LocalStepTest, AStepTakesWhatAnotherPutsAndHoldsUpNobodyMeanwhile) {
  const auto taker = taking();
  auto taken = std::async(std::launch::async, [&] { return run(*taker); });
  put(0);  // on the same device
  EXPECT_EQ(taken.get(), 0);
  put(100);  // a tanh of 1
  EXPECT_EQ(run(*taker), 10);
  EXPECT_EQ(jobs_.size(), 0u);
}

TEST_F(LocalStepTest, AStepThatWaitsInVainSaysWhatFor) {
  const auto taker = taking();
  EXPECT_THAT(errorText([&] { run(*taker, kNoTime); }), HasSubstr("has not ended within 0.001 s"));
  EXPECT_THAT(whyLate(*taker),
              HasSubstr("late; node 'take' (QueueDequeue) waits for 1 elements of the queue "
                        "'jobs', which has 0 of at most 2"));
  put(0);
  put(0);
  const auto third = putting(0);
  EXPECT_THAT(whyLate(*third),
              HasSubstr("; node 'put' (QueueEnqueue) waits for room for 1 elements in the queue"));
  EXPECT_EQ(jobs_.size(), 2u);
  EXPECT_EQ(rendezvous_.load().steps, 0u);
}

TEST_F(LocalStepTest, ALateStepNamesAFewOfTheNodesThatWait) {
  Graph made;
  std::vector<Output> takes;
  for (int i = 0; i < 5; ++i)
    takes.push_back({made.b.node("QueueDequeue", {made.jobs}, {}, "take" + std::to_string(i))});
  const auto program = compiled(made, takes);
  const std::string why = whyLate(*program);
  EXPECT_THAT(why, HasSubstr("late; node 'take0' (QueueDequeue) waits for 1 elements"));
  EXPECT_THAT(why, HasSubstr("; node 'take2' (QueueDequeue) waits"));
  EXPECT_THAT(why, Not(HasSubstr("take3")));
  EXPECT_THAT(why, EndsWith("; 2 other nodes wait at queues"));
  put(0);
  EXPECT_EQ(jobs_.size(), 1u) << "all have given up";
}

TEST_F(LocalStepTest, WhoWasEndedTakesNothing) {
  const auto taker = taking();
  errorText([&] { run(*taker, kNoTime); });
  put(0);
  EXPECT_EQ(jobs_.size(), 1u);
  EXPECT_EQ(run(*taker), 0) << "the program goes on with its next step";
}

// The abort may come before the step has begun to wait.
TEST_F(LocalStepTest, AnAbortEndsAStepThatWaits) {
  const auto taker = taking();
  auto told = std::async(std::launch::async, [&] { return errorText([&] { run(*taker); }); });
  while (told.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready)
    watch_.abortAll(Error(ErrorCode::kUnavailable, "enough"));
  EXPECT_EQ(told.get(), "enough");
  put(0);
  EXPECT_EQ(jobs_.size(), 1u);
}

TEST_F(LocalStepTest, AClosedQueueEndsAStepThatWaits) {
  const auto taker = taking();
  auto told = std::async(std::launch::async, [&] { return errorText([&] { run(*taker); }); });
  jobs_.close(false);
  EXPECT_EQ(told.get(), "the queue 'jobs' is closed and has 0 of 1 elements");
}

// The nodes behind both queues would be one piece if they didn't wait.
TEST_F(LocalStepTest, WhatFollowsOneQueueDoesNotWaitForAnother) {
  Graph made;
  const auto queue = [&](const char* name) {
    return Output{made.b.node("FIFOQueue", {},
                              {{"component_types", std::string("float32")},
                               {"shapes", std::string("[]")},
                               {"capacity", int64_t{2}}},
                              name)};
  };
  const Output never = queue("never"), done = queue("done");
  const Output first = made.b.tanh({made.b.node("QueueDequeue", {made.jobs})});
  made.b.node("QueueEnqueue", {done, first});
  const Output second = made.b.scale({made.b.node("QueueDequeue", {never})}, 2);
  const auto program = compiled(made, {second});
  const graph::QueueSpec spec{{{DType::kFloat32, {}}}, 2};
  FifoQueue never_filled{"never", spec, budget_}, filled{"done", spec, budget_};
  std::vector<StepPart> parts;
  parts.push_back({program.get(), &device_, {}});
  for (const PartProgram::UsedQueue& used : program->queues())
    parts[0].inputs.queues.push_back(used.key.name == "jobs"    ? &jobs_
                                     : used.key.name == "never" ? &never_filled
                                                                : &filled);
  std::promise<StepEnd> ended;
  const AbortStep abort = startParts({100, Incarnation{7}}, parts, {.rendezvous = &rendezvous_},
                                     [&](StepEnd end) { ended.set_value(std::move(end)); });
  put(0);
  std::promise<void> is_there;
  filled.dequeue(1, [&](FifoQueue::Outcome) { is_there.set_value(); });
  EXPECT_EQ(is_there.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  abort(Error(ErrorCode::kUnavailable, "enough"));
  EXPECT_TRUE(std::holds_alternative<Error>(ended.get_future().get()));
  rendezvous_.end(100);
}

// In the calling thread, as the step waits for nothing.
TEST_F(LocalStepTest, AStepThatComputesIsEndedBetweenItsKernels) {
  std::promise<void> begun;
  devices_.act("begins", [&begun] { begun.set_value(); });
  const auto program = endless();
  auto told = std::async(std::launch::async, [&] { return errorText([&] { run(*program); }); });
  begun.get_future().get();
  watch_.abortAll(Error(ErrorCode::kUnavailable, "enough"));
  EXPECT_EQ(told.get(), "enough");
  devices_.act("begins", [] {});
  const auto other = endless();
  EXPECT_THAT(errorText([&] { run(*other, kNoTime); }), HasSubstr("has not ended within 0.001 s"));
}

}  // namespace
}  // namespace dtf::engine
