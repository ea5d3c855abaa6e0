#include "common/train/step_loop.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/error.h"

namespace dtf::train {
namespace {

using Calls = std::vector<std::string>;

// ps that want two batches of step 0 and one of step 1.
class ScriptedClient final : public ps::ParameterClient {
 public:
  explicit ScriptedClient(Calls& calls) : calls_(calls) {}
  void declare(const ps::ModelDeclaration&) override {}
  void initialise(std::span<const std::span<const float>>, uint64_t) override {}
  void waitInitialised() override {}
  ps::StepState pull() override {
    calls_.push_back("pull");
    return {.done = done_at_once};
  }
  const float* parameters(uint32_t) const override { return nullptr; }
  void pullAverages() override {}
  const float* averages(uint32_t) const override { return nullptr; }
  float* gradients(uint32_t) override { return nullptr; }
  void setRows(uint32_t, std::span<const uint32_t>) override {}
  ps::StepState exchange(uint64_t step, uint32_t batch, float loss) override {
    calls_.push_back("exchange " + std::to_string(step) + "." + std::to_string(batch));
    EXPECT_EQ(loss, 0.5F);
    if (step == 0 && batch == 0) return {.outcome = ps::Outcome::kQueued, .next_batch = 1};
    if (step == 0) return {.global_step = 1, .next_step = 1};
    return {.global_step = 2, .next_step = 2, .done = true};
  }
  void barrier(std::string_view) override {}
  void finish() override {}
  bool done_at_once = false;

 private:
  Calls& calls_;
};

class NotingWorker final : public StepWorker {
 public:
  explicit NotingWorker(Calls& calls) : calls_(calls) {}
  void onFirst(const ps::StepState&) override { calls_.push_back("first"); }
  void onDue(const ps::StepState&) override { calls_.push_back("due"); }
  float compute(const ps::StepState& due) override {
    calls_.push_back("compute " + std::to_string(due.next_step));
    if (fails) throw Error(ErrorCode::kTrainingFailed, "the loss is nan");
    return 0.5F;
  }
  void onWentBack(const ps::StepState& state) override {
    calls_.push_back("went back to " + std::to_string(state.next_step));
  }
  void onAnswer(const ps::StepState& due, const ps::StepState& state) override {
    calls_.push_back("answer " + std::to_string(due.next_step) + "->" +
                     std::to_string(state.next_step));
  }
  void afterBatch(const ps::StepState&) override { calls_.push_back("after"); }
  bool fails = false;

 private:
  Calls& calls_;
};

TEST(StepLoop, ComputesWhatThePsAskForUntilTheyAreDone) {
  Calls calls;
  ScriptedClient client(calls);
  NotingWorker worker(calls);
  const ps::StepState last = trainSteps(client, worker);
  EXPECT_TRUE(last.done);
  EXPECT_EQ(last.global_step, 2u);
  EXPECT_EQ(calls, (Calls{"pull", "first",                                             //
                          "due", "compute 0", "exchange 0.0", "answer 0->0", "after",  //
                          "due", "compute 0", "exchange 0.1", "answer 0->1", "after",  //
                          "due", "compute 1", "exchange 1.0", "answer 1->2", "after"}));
}

TEST(StepLoop, OfAJobThatIsDoneNothingIsComputed) {
  Calls calls;
  ScriptedClient client(calls);
  client.done_at_once = true;
  NotingWorker worker(calls);
  trainSteps(client, worker);
  EXPECT_EQ(calls, (Calls{"pull", "first"}));
}

TEST(StepLoop, WhatTheWorkerThrowsIsNotPushed) {
  Calls calls;
  ScriptedClient client(calls);
  NotingWorker worker(calls);
  worker.fails = true;
  EXPECT_THROW(trainSteps(client, worker), Error);
  EXPECT_EQ(calls.back(), "compute 0");
}

}  // namespace
}  // namespace dtf::train
