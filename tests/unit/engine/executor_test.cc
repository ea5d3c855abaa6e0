#include "common/engine/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <future>
#include <optional>
#include <thread>

#include "common/graph/function.h"
#include "tests/unit/engine/devices.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::engine {
namespace {

using graph::NodeId;
using graph::Output;
using graph::testing::errorText;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr Incarnation kProcess{7};

// One part; the test plays the other side. "in" arrives as edge 0, Relu of it leaves as edge 1, and
// the sum of both is fetched.
class ExecutorTest : public ::testing::Test {
 protected:
  ExecutorTest() {
    const Output in{b_.node("_Recv", {}, edge("in"), "in")};
    const Output out = b_.relu(in);
    b_.node("_Send", {out}, edge("out"), "out");
    const std::vector<Output> fetches = {b_.add(in, out)};
    program_ =
        std::make_unique<PartProgram>(graph_, fetches, *devices_.all()[0].device,
                                      devices_.kernels(), EdgeNumbers{{"in", 0}, {"out", 1}});
  }

  static graph::Attributes edge(const std::string& key) {
    return {{"key", key}, {"dtype", DType::kFloat32}, {"shape", Shape{2}}};
  }
  Rendezvous::Sent send(uint64_t step, std::span<const float> values) {
    return rendezvous_.send({step, kProcess, 0}, {.bytes = std::as_bytes(values)});
  }
  // Returns the sum of the fetched values.
  float runStep(uint64_t step) {
    std::vector<StepPart> parts;
    parts.push_back({program_.get(), &queue_, {}});
    kernels_ = testing::runToEnd({step, kProcess}, parts, rendezvous_);
    const Bytes bytes = program_->fetch(0, parts[0].inputs);
    const float* const values = reinterpret_cast<const float*>(bytes.data());
    return values[0] + values[1];
  }
  void expectNothingLeft() const {
    EXPECT_EQ(rendezvous_.load().steps, 0u);
    EXPECT_EQ(rendezvous_.load().waiting, 0u);
  }

  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
  testing::Devices devices_{testing::cpusOfWorker0(1)};
  Rendezvous rendezvous_;
  std::unique_ptr<PartProgram> program_;
  DeviceThread queue_{"cpu:0"};
  uint64_t kernels_ = 0;
  const std::vector<float> values_ = {-1, 5};
};

TEST_F(ExecutorTest, WhatArrivedBeforeTheStepBeganIsUsed) {
  std::vector<float> left;
  rendezvous_.receive({1, kProcess, 1}, [&](const Rendezvous::Arrival& arrival) {
    const Bytes bytes = std::get<Parcel>(arrival).bytes;
    const float* const values = reinterpret_cast<const float*>(bytes.data());
    left.assign(values, values + 2);
  });
  EXPECT_EQ(send(1, values_), Rendezvous::Sent::kTaken);
  EXPECT_EQ(runStep(1), 9);
  EXPECT_EQ(left, (std::vector<float>{0, 5}));
  EXPECT_EQ(kernels_, 2u);
  expectNothingLeft();
}

TEST_F(ExecutorTest, WhatArrivesLaterIsAwaited) {
  std::thread peer([this] {
    // Waits for the step to wait: a yield alone would let the test pass without that.
    while (rendezvous_.load().waiting == 0) std::this_thread::yield();
    send(1, values_);
  });
  EXPECT_EQ(runStep(1), 9);
  peer.join();
  expectNothingLeft();
}

TEST_F(ExecutorTest, AnAbortFromOutsideEndsTheStepWithItsCause) {
  std::thread peer([this] {
    while (rendezvous_.load().waiting == 0) std::this_thread::yield();
    rendezvous_.abort(1, Error(ErrorCode::kUnavailable, "worker/1 was lost"));
  });
  EXPECT_EQ(errorText([this] { runStep(1); }), "worker/1 was lost");
  peer.join();
  expectNothingLeft();
  send(2, values_);
  EXPECT_EQ(runStep(2), 9) << "the next step is another";
}

TEST_F(ExecutorTest, ATensorOfTheWrongSizeEndsTheStep) {
  send(1, std::span(values_).first(1));
  EXPECT_THAT(errorText([this] { runStep(1); }),
              AllOf(HasSubstr("edge in"), HasSubstr("8 bytes"), HasSubstr("4 arrived")));
  expectNothingLeft();
}

TEST_F(ExecutorTest, WhatADeadProcessSentIsNotUsed) {
  const std::vector<float> wrong = {100, 100};
  rendezvous_.send({1, Incarnation{6}, 0}, {.bytes = std::as_bytes(std::span(wrong))});
  send(1, values_);
  EXPECT_EQ(runStep(1), 9);
  expectNothingLeft();
}

TEST_F(ExecutorTest, ThePartIsCutSoThatWhatLeavesLeavesFirst) {
  ASSERT_THAT(program_->pieces(), SizeIs(2));
  EXPECT_THAT(program_->pieces()[0].receives, SizeIs(1));
  EXPECT_THAT(program_->pieces()[1].after, SizeIs(1));
  EXPECT_THAT(program_->receives(), SizeIs(1));
}

// A loop that would take some hours.
TEST_F(ExecutorTest, AnAbortEndsAStepThatComputes) {
  std::promise<void> begun, ended;
  devices_.act("begins", [&begun] { begun.set_value(); });
  const graph::TensorSpec square{DType::kFloat32, {200, 200}};
  const auto product = graph::Function::build(graph::standardOps(), std::array{square},
                                              [](graph::Builder& b, std::span<const Output> p) {
                                                return std::vector{b.matMul(p[0], p[0])};
                                              });
  graph::Graph graph(graph::standardOps());
  graph::Builder b(graph);
  const Output x = b.constant({200, 200}, 0);
  const std::vector<Output> fetches =
      b.whileLoop({.carried = {Output{b.node("Tanh", {x}, {}, "begins")}},
                   .sequences = {},
                   .captured = {},
                   .body = product,
                   .cond = nullptr,
                   .max_iterations = graph::Function::kIterationsMax})
          .carried;
  PartProgram program(graph, fetches, *devices_.all()[0].device, devices_.kernels(), {});
  std::vector<StepPart> parts;
  parts.push_back({&program, &queue_, {}});
  StepEnd end(uint64_t{0});
  const AbortStep abort =
      startParts({1, kProcess}, parts, {.rendezvous = &rendezvous_}, [&](StepEnd how) {
        end = std::move(how);
        ended.set_value();
      });
  begun.get_future().get();
  abort(Error(ErrorCode::kUnavailable, "enough"));
  ended.get_future().get();
  rendezvous_.end(1);
  ASSERT_TRUE(std::holds_alternative<Error>(end));
  EXPECT_EQ(std::get<Error>(end).message(), "enough");
}

// Edge 0 comes from another process, edge 1 goes to ps/0; the test plays both.
class RemoteStepTest : public ExecutorTest, public Departures {
 protected:
  void send(uint64_t step, TaskId to, std::vector<PartProgram::Send> tensors, Done done) override {
    EXPECT_EQ(to, (TaskId{JobKind::kPs, 0}));
    EXPECT_THAT(tensors, SizeIs(1));
    EXPECT_EQ(tensors[0].edge, 1u);
    EXPECT_EQ(step, 1u);
    const MutexLock lock(mutex_);
    done_ = std::move(done);
    changed_.notifyAll();
  }
  void start(std::shared_ptr<trace::StepTrace> trace = nullptr) {
    parts_.push_back({program_.get(), &queue_, {}, std::move(trace)});
    abort_ = startParts({1, kProcess}, parts_,
                        {.rendezvous = &rendezvous_, .routes = &routes_, .departures = this},
                        [this](StepEnd end) {
                          const MutexLock lock(mutex_);
                          end_ = std::move(end);
                          changed_.notifyAll();
                        });
  }
  void arrive() { rendezvous_.send({1, kSender, 0}, {.bytes = std::as_bytes(std::span(values_))}); }
  Done awaitSend() {
    MutexLock lock(mutex_);
    while (!done_) changed_.wait(mutex_);
    return done_;
  }
  StepEnd awaitEnd() {
    MutexLock lock(mutex_);
    while (!end_) changed_.wait(mutex_);
    return *end_;
  }
  bool hasEnded() {
    MutexLock lock(mutex_);
    return end_.has_value();
  }
  static std::string textOf(const StepEnd& end) {
    const Error* const error = std::get_if<Error>(&end);
    return error == nullptr ? "" : error->message();
  }

  static constexpr Incarnation kSender{8};
  const Routes routes_{.sources = {{0, kSender}}, .destinations = {{1, {JobKind::kPs, 0}}}};
  std::vector<StepPart> parts_;
  AbortStep abort_;
  Mutex mutex_;
  CondVar changed_;
  Done done_ DTF_GUARDED_BY(mutex_);
  std::optional<StepEnd> end_ DTF_GUARDED_BY(mutex_);
};

TEST_F(RemoteStepTest, AStepHasEndedWhenWhatItSentHasArrived) {
  start();
  EXPECT_EQ(rendezvous_.send({1, kProcess, 0}, {.bytes = std::as_bytes(std::span(values_))}),
            Rendezvous::Sent::kTaken)
      << "of another process than the one that is awaited: it matches nothing";
  EXPECT_FALSE(hasEnded());
  arrive();
  const Done done = awaitSend();
  EXPECT_FALSE(hasEnded());
  done(std::nullopt);
  const StepEnd end = awaitEnd();
  EXPECT_EQ(std::get<uint64_t>(end), 2u);
  rendezvous_.end(1);
}

TEST_F(RemoteStepTest, ATracedStepHasItsReceivesPiecesAndSends) {
  const auto trace = std::make_shared<trace::StepTrace>(TaskId{JobKind::kWorker, 0});
  start(trace);
  arrive();
  awaitSend()(std::nullopt);
  awaitEnd();
  rendezvous_.end(1);
  const trace::TaskTrace told = trace->finish();
  std::vector<std::string> names;
  for (const trace::StepSpan& span : told.spans) names.push_back(span.name);
  EXPECT_THAT(names,
              UnorderedElementsAre("_Recv in", "Relu", "Add", "piece 0", "piece 1", "_Send out"));
  EXPECT_THAT(told.tracks, UnorderedElementsAre("rendezvous", "cpu:0", "transfers"));
}

TEST_F(RemoteStepTest, WhatCantBeSentEndsTheStep) {
  start();
  arrive();
  awaitSend()(Error(ErrorCode::kUnavailable, "ps/0 was lost"));
  EXPECT_EQ(textOf(awaitEnd()), "ps/0 was lost");
  rendezvous_.end(1);
}

TEST_F(RemoteStepTest, AnAbortEndsAStepThatWaitsForAnArrivalOrForItsOwnMessage) {
  start();
  arrive();
  const Done done = awaitSend();
  abort_(Error(ErrorCode::kBadData, "fantasia!"));
  EXPECT_EQ(textOf(awaitEnd()), "fantasia!");
  rendezvous_.end(1);
  done(std::nullopt);  // too late, no effect
  abort_(Error(ErrorCode::kBadData, "again"));
}

TEST_F(RemoteStepTest, AnAbortEndsAStepThatWaitsForAnArrival) {
  start();
  abort_(Error(ErrorCode::kBadData, "fantasia!"));
  EXPECT_EQ(textOf(awaitEnd()), "fantasia!");
  rendezvous_.end(1);
}

}  // namespace
}  // namespace dtf::engine
