#include "common/train/step_loop.h"

#include <gtest/gtest.h>

#include <optional>
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
    if (!pulled.empty()) {
      const ps::StepState state = pulled.front();
      pulled.erase(pulled.begin());
      return state;
    }
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
  void startExchange(uint64_t step, uint32_t batch, float loss) override {
    calls_.push_back("start " + std::to_string(step) + "." + std::to_string(batch));
    EXPECT_EQ(loss, 0.5F);
    EXPECT_FALSE(under_way);
    under_way = true;
  }
  ps::StepState finishExchange() override {
    calls_.push_back("finish");
    EXPECT_TRUE(under_way);
    under_way = false;
    return answers.at(answered++);
  }
  ps::StepState finishPush() override {
    calls_.push_back("finish push");
    return {.global_step = 2, .next_step = 2, .done = true};
  }
  void abandonPush(const Error& why) override { calls_.push_back("abandon: " + why.message()); }
  void barrier(std::string_view) override {}
  void finish() override {}
  bool done_at_once = false, under_way = false;
  std::vector<ps::StepState> pulled;   // in place of the first step
  std::vector<ps::StepState> answers;  // of overlapped exchanges
  size_t answered = 0;

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
    if (due.next_step >= fails_at) throw Error(ErrorCode::kTrainingFailed, "the loss is nan");
    return 0.5F;
  }
  bool hasStartedPush() const override { return starts_push; }
  void beforePush(const ps::StepState& due) override {
    calls_.push_back("before push " + std::to_string(due.next_step));
  }
  void onWentBack(const ps::StepState& state) override {
    calls_.push_back("went back to " + std::to_string(state.next_step));
  }
  void onAnswer(const ps::StepState& due, const ps::StepState& state) override {
    calls_.push_back("answer " + std::to_string(due.next_step) + "->" +
                     std::to_string(state.next_step));
  }
  void afterBatch(const ps::StepState&) override { calls_.push_back("after"); }
  uint64_t fails_at = UINT64_MAX;
  bool starts_push = false;

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
  EXPECT_EQ(calls,
            (Calls{"pull", "first",                                                               //
                   "due",  "compute 0", "before push 0", "exchange 0.0", "answer 0->0", "after",  //
                   "due",  "compute 0", "before push 0", "exchange 0.1", "answer 0->1", "after",  //
                   "due",  "compute 1", "before push 1", "exchange 1.0", "answer 1->2", "after"}));
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
  worker.fails_at = 0;
  EXPECT_THROW(trainSteps(client, worker), Error);
  EXPECT_EQ(calls.back(), "compute 0");
}

// Asks for the rows of a batch unless it was told that they are there.
class RowWorker final : public StepWorker {
 public:
  explicit RowWorker(Calls& calls) : calls_(calls) {}
  bool hasRowsOf(const ps::StepState& due) override { return rows_of == due.next_step; }
  void wantRowsOf(const ps::StepState& due) override {
    calls_.push_back("want " + std::to_string(due.next_step));
    rows_of = due.next_step;
  }
  void beforeFirst() override { calls_.push_back("want none"); }
  void onRows(const ps::StepState&) override { calls_.push_back("rows"); }
  void onFirst(const ps::StepState&) override { calls_.push_back("first"); }
  void onDue(const ps::StepState&) override {}
  float compute(const ps::StepState& due) override {
    EXPECT_EQ(rows_of, due.next_step);
    calls_.push_back("compute " + std::to_string(due.next_step));
    return 0.5F;
  }
  void beforePush(const ps::StepState& due) override { rows_of = due.next_step + 1; }
  void onAnswer(const ps::StepState&, const ps::StepState&) override {}
  void onWentBack(const ps::StepState& state) override {
    calls_.push_back("went back to " + std::to_string(state.next_step));
  }
  std::optional<uint64_t> rows_of;

 private:
  Calls& calls_;
};

// Step 0 has two batches: the first one's answer is of rows that the second doesn't have.
TEST(StepLoop, TheRowsOfABatchAreThereWhenItIsComputed) {
  Calls calls;
  ScriptedClient client(calls);
  client.pulled = {{}, {}, {.next_batch = 1}};
  RowWorker worker(calls);
  EXPECT_EQ(trainSteps(client, worker).global_step, 2u);
  EXPECT_EQ(calls, (Calls{"want none", "pull", "want 0", "pull", "rows", "first",  //
                          "compute 0", "exchange 0.0", "want 0", "pull", "rows",   //
                          "compute 0", "exchange 0.1", "compute 1", "exchange 1.0"}));
}

// While they are pulled another batch may come to be due, and another epoch.
TEST(StepLoop, RowsArePulledUntilTheyAreThoseThatAreDue) {
  Calls calls;
  ScriptedClient client(calls);
  client.pulled = {
      {.next_step = 4, .epoch = 1}, {.next_step = 5, .epoch = 1}, {.next_step = 5, .epoch = 1}};
  RowWorker worker(calls);
  trainSteps(client, worker);
  calls.resize(8);
  EXPECT_EQ(calls,
            (Calls{"want none", "pull", "want 4", "pull", "rows", "want 5", "pull", "rows"}));
}

TEST(StepLoop, OverlappedTheNextBatchIsComputedDuringTheExchange) {
  Calls calls;
  ScriptedClient client(calls);
  client.answers = {{.global_step = 1, .next_step = 1},
                    {.global_step = 2, .next_step = 2},
                    {.global_step = 3, .next_step = 3, .done = true}};
  NotingWorker worker(calls);
  const ps::StepState last = trainOverlapped(client, worker, 3);
  EXPECT_EQ(last.global_step, 3u);
  EXPECT_EQ(
      calls,
      (Calls{
          "pull",        "first",                                                                 //
          "due",         "compute 0",     "before push 0", "start 0.0", "compute 1",   "finish",  //
          "answer 0->1", "after",                                                                 //
          "due",         "before push 1", "start 1.0",     "compute 2", "finish",                 //
          "answer 1->2", "after",                                                                 //
          "due",         "before push 2", "start 2.0",     "finish",    "answer 2->3", "after"}))
      << "behind the last step of the job nothing is computed";
}

// Its gradient is of parameters that are no more.
TEST(StepLoop, OverlappedABatchIsDroppedThatTheAnswerDoesNotAskFor) {
  Calls calls;
  ScriptedClient client(calls);
  client.answers = {
      {.outcome = ps::Outcome::kWentBack, .global_step = 1, .next_step = 1, .epoch = 2},
      {.global_step = 2, .next_step = 5},
      {.global_step = 9, .next_step = 6, .done = true}};
  NotingWorker worker(calls);
  trainOverlapped(client, worker, 100);
  EXPECT_EQ(calls, (Calls{"pull",
                          "first",  //
                          "due",
                          "compute 0",
                          "before push 0",
                          "start 0.0",
                          "compute 1",
                          "finish",          //
                          "went back to 1",  //
                          "due",
                          "compute 1",
                          "before push 1",
                          "start 1.0",
                          "compute 2",
                          "finish",  //
                          "answer 1->5",
                          "after",  //
                          "due",
                          "compute 5",
                          "before push 5",
                          "start 5.0",
                          "compute 6",
                          "finish",  //
                          "answer 5->6",
                          "after"}));
}

TEST(StepLoop, OverlappedWhatTheWorkerThrowsEndsTheLoopWhereTheBatchIsAskedFor) {
  Calls calls;
  ScriptedClient client(calls);
  client.answers = {{.global_step = 1, .next_step = 1}};
  NotingWorker worker(calls);
  worker.fails_at = 1;
  EXPECT_THROW(trainOverlapped(client, worker, 100), Error);
  EXPECT_EQ(calls.back(), "due") << "it is not pushed";
  EXPECT_FALSE(client.under_way);
}

TEST(StepLoop, OverlappedAnErrorOfABatchThatIsDroppedIsNone) {
  Calls calls;
  ScriptedClient client(calls);
  client.answers = {{.global_step = 50, .next_step = 1, .done = true}};
  NotingWorker worker(calls);
  worker.fails_at = 1;
  EXPECT_TRUE(trainOverlapped(client, worker, 100).done);
}

TEST(StepLoop, APushThatTheWorkerHasStartedIsFinished) {
  Calls calls;
  ScriptedClient client(calls);
  NotingWorker worker(calls);
  worker.starts_push = true;
  EXPECT_TRUE(trainSteps(client, worker).done);
  EXPECT_EQ(calls, (Calls{"pull", "first", "due", "compute 0", "before push 0", "finish push",
                          "answer 0->2", "after"}));
}

TEST(StepLoop, APushThatTheWorkerHasStartedIsAbandonedWithWhatTheWorkerThrows) {
  Calls calls;
  ScriptedClient client(calls);
  NotingWorker worker(calls);
  worker.starts_push = true;
  worker.fails_at = 0;
  EXPECT_THROW(trainSteps(client, worker), Error);
  EXPECT_EQ(calls.back(), "abandon: the loss is nan");
}

}  // namespace
}  // namespace dtf::train
