#include "common/train/step_loop.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/error.h"

namespace dtf::train {
namespace {

using Calls = std::vector<std::string>;

// ps that want two batches of step 0 and one of step 1.
class ScriptedClient final : public exchange::ExchangeClient, public exchange::JobClient {
 public:
  explicit ScriptedClient(Calls& calls) : calls_(calls) {}
  exchange::JobClient& job() override { return *this; }
  exchange::Traits traits() const override { return {}; }
  void declare(const arena::ModelDeclaration&, std::shared_ptr<optimizer::DeviceArrays>) override {}
  replication::StepState pull(exchange::Values) override {
    calls_.push_back("pull");
    if (!pulled.empty()) {
      const replication::StepState state = pulled.front();
      pulled.erase(pulled.begin());
      return state;
    }
    return {.done = done_at_once};
  }
  const float* view(exchange::Values, uint32_t) const override { return nullptr; }
  float* gradients(uint32_t) override { return nullptr; }
  void setRows(exchange::RowsOf, uint32_t, const arena::RowSet&) override {}
  void begin(uint64_t step, uint32_t batch, float loss, exchange::Gradient gradient) override {
    calls_.push_back("begin " + std::to_string(step) + "." + std::to_string(batch));
    EXPECT_EQ(loss, 0.5F);
    EXPECT_EQ(gradient, exchange::Gradient::kWhole);
    EXPECT_FALSE(under_way.has_value());
    under_way = {step, batch};
  }
  void written(std::span<const uint64_t>) override {}
  replication::StepState finish(const Error* failure) override {
    calls_.push_back(failure == nullptr ? "finish" : "finish: " + failure->message());
    const auto begun = std::exchange(under_way, std::nullopt);
    if (!answers.empty()) return answers.at(answered++);
    if (begun == Batch(0, 0)) return {.outcome = replication::Outcome::kQueued, .next_batch = 1};
    if (begun == Batch(0, 1)) return {.global_step = 1, .next_step = 1};
    return {.global_step = 2, .next_step = 2, .done = true};
  }
  void initialise(std::span<const std::span<const float>>, uint64_t) override {}
  void waitInitialised() override {}
  void barrier(std::string_view) override {}
  void setEvaluating(bool) override {}
  void leave() override {}

  using Batch = std::pair<uint64_t, uint32_t>;  // its step and number
  bool done_at_once = false;
  std::optional<Batch> under_way;
  std::vector<replication::StepState> pulled;   // in place of the first step
  std::vector<replication::StepState> answers;  // of all exchanges
  size_t answered = 0;

 private:
  Calls& calls_;
};

class NotingWorker final : public StepWorker {
 public:
  explicit NotingWorker(Calls& calls) : calls_(calls) {}
  void onFirst(const replication::StepState&) override { calls_.push_back("first"); }
  void onDue(const replication::StepState&) override { calls_.push_back("due"); }
  float compute(const replication::StepState& due) override {
    calls_.push_back("compute " + std::to_string(due.next_step));
    if (due.next_step >= fails_at) throw Error(ErrorCode::kTrainingFailed, "the loss is nan");
    return 0.5F;
  }
  bool hasBegunExchange() const override { return begins_exchange; }
  void beforePush(const replication::StepState& due) override {
    calls_.push_back("before push " + std::to_string(due.next_step));
  }
  void onWentBack(const replication::StepState& state) override {
    calls_.push_back("went back to " + std::to_string(state.next_step));
  }
  void onAnswer(const replication::StepState& due, const replication::StepState& state) override {
    calls_.push_back("answer " + std::to_string(due.next_step) + "->" +
                     std::to_string(state.next_step));
  }
  void afterBatch(const replication::StepState&) override { calls_.push_back("after"); }
  uint64_t fails_at = UINT64_MAX;
  bool begins_exchange = false;

 private:
  Calls& calls_;
};

TEST(StepLoop, ComputesWhatThePsAskForUntilTheyAreDone) {
  Calls calls;
  ScriptedClient client(calls);
  NotingWorker worker(calls);
  const replication::StepState last = trainSteps(client, worker);
  EXPECT_TRUE(last.done);
  EXPECT_EQ(last.global_step, 2u);
  EXPECT_EQ(
      calls,
      (Calls{
          "pull", "first",                                                                      //
          "due",  "compute 0", "before push 0", "begin 0.0", "finish", "answer 0->0", "after",  //
          "due",  "compute 0", "before push 0", "begin 0.1", "finish", "answer 0->1", "after",  //
          "due",  "compute 1", "before push 1", "begin 1.0", "finish", "answer 1->2", "after"}));
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

// Asks for the rows of a step unless it has them.
class RowWorker final : public StepWorker {
 public:
  explicit RowWorker(Calls& calls) : calls_(calls) {}
  bool hasRowsOf(const replication::StepState& due) override { return rows_of == due.next_step; }
  void wantRowsOf(const replication::StepState& due) override {
    calls_.push_back("want " + std::to_string(due.next_step));
    rows_of = due.next_step;
  }
  void beforeFirst() override { calls_.push_back("want none"); }
  void onRows(const replication::StepState&) override { calls_.push_back("rows"); }
  void onFirst(const replication::StepState&) override { calls_.push_back("first"); }
  void onDue(const replication::StepState&) override {}
  float compute(const replication::StepState& due) override {
    EXPECT_EQ(rows_of, due.next_step);
    calls_.push_back("compute " + std::to_string(due.next_step));
    return 0.5F;
  }
  void beforePush(const replication::StepState& due) override { rows_of = due.next_step + 1; }
  void onAnswer(const replication::StepState&, const replication::StepState&) override {}
  void onWentBack(const replication::StepState& state) override {
    calls_.push_back("went back to " + std::to_string(state.next_step));
  }
  std::optional<uint64_t> rows_of;

 private:
  Calls& calls_;
};

// Step 0 has two batches: the reply to the first one lacks rows of the second.
TEST(StepLoop, TheRowsOfABatchAreThereWhenItIsComputed) {
  Calls calls;
  ScriptedClient client(calls);
  client.pulled = {{}, {}, {.next_batch = 1}};
  RowWorker worker(calls);
  EXPECT_EQ(trainSteps(client, worker).global_step, 2u);
  EXPECT_EQ(calls, (Calls{"want none", "pull", "want 0", "pull", "rows", "first",        //
                          "compute 0", "begin 0.0", "finish", "want 0", "pull", "rows",  //
                          "compute 0", "begin 0.1", "finish", "compute 1", "begin 1.0", "finish"}));
}

// While rows are pulled, another batch or another epoch may become due.
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
  const replication::StepState last = trainOverlapped(client, worker, 3);
  EXPECT_EQ(last.global_step, 3u);
  EXPECT_EQ(
      calls,
      (Calls{
          "pull",        "first",                                                                 //
          "due",         "compute 0",     "before push 0", "begin 0.0", "compute 1",   "finish",  //
          "answer 0->1", "after",                                                                 //
          "due",         "before push 1", "begin 1.0",     "compute 2", "finish",                 //
          "answer 1->2", "after",                                                                 //
          "due",         "before push 2", "begin 2.0",     "finish",    "answer 2->3", "after"}))
      << "behind the last step of the job nothing is computed";
}

// Its gradient is of parameters that are no longer current.
TEST(StepLoop, OverlappedABatchIsDroppedThatTheAnswerDoesNotAskFor) {
  Calls calls;
  ScriptedClient client(calls);
  client.answers = {
      {.outcome = replication::Outcome::kWentBack, .global_step = 1, .next_step = 1, .epoch = 2},
      {.global_step = 2, .next_step = 5},
      {.global_step = 9, .next_step = 6, .done = true}};
  NotingWorker worker(calls);
  trainOverlapped(client, worker, 100);
  EXPECT_EQ(calls, (Calls{"pull",
                          "first",  //
                          "due",
                          "compute 0",
                          "before push 0",
                          "begin 0.0",
                          "compute 1",
                          "finish",          //
                          "went back to 1",  //
                          "due",
                          "compute 1",
                          "before push 1",
                          "begin 1.0",
                          "compute 2",
                          "finish",  //
                          "answer 1->5",
                          "after",  //
                          "due",
                          "compute 5",
                          "before push 5",
                          "begin 5.0",
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
  EXPECT_FALSE(client.under_way.has_value());
}

TEST(StepLoop, OverlappedAnErrorOfABatchThatIsDroppedIsNone) {
  Calls calls;
  ScriptedClient client(calls);
  client.answers = {{.global_step = 50, .next_step = 1, .done = true}};
  NotingWorker worker(calls);
  worker.fails_at = 1;
  EXPECT_TRUE(trainOverlapped(client, worker, 100).done);
}

TEST(StepLoop, AnExchangeThatTheWorkerHasBegunIsFinished) {
  Calls calls;
  ScriptedClient client(calls);
  NotingWorker worker(calls);
  worker.begins_exchange = true;
  EXPECT_TRUE(trainSteps(client, worker).done);
  EXPECT_EQ(calls, (Calls{"pull", "first", "due", "compute 0", "before push 0", "finish",
                          "answer 0->2", "after"}));
}

TEST(StepLoop, AnExchangeThatTheWorkerHasBegunIsFinishedWithWhatTheWorkerThrows) {
  Calls calls;
  ScriptedClient client(calls);
  NotingWorker worker(calls);
  worker.begins_exchange = true;
  worker.fails_at = 0;
  EXPECT_THROW(trainSteps(client, worker), Error);
  EXPECT_EQ(calls.back(), "finish: the loss is nan");
}

}  // namespace
}  // namespace dtf::train
