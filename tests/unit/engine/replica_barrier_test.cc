#include "common/engine/replica_barrier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/engine/variable.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::engine {
namespace {

using graph::testing::errorText;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class ReplicaBarrierTest : public ::testing::Test {
 protected:
  // What an arrival got.
  struct Got {
    std::vector<int64_t> decision;
    int64_t accepted = -1;
    int64_t step = -1;
    std::string error;
    bool is_there = false;
  };

  ReplicaBarrierTest() { set(0); }
  void set(int64_t value) { counter_.set(std::as_bytes(std::span(&value, 1))); }
  int64_t globalStep() { return counter_.read()->as<int64_t>()[0]; }
  ReplicaBarrier& barrier() { return counter_.barrier(); }
  int64_t ticket(int64_t rank) { return barrier().newTicket(rank).number; }
  Awaited::Wait arrive(Got& got, int64_t rank, int64_t ticket, std::vector<int64_t> steps,
                       int64_t aggregate = 2, int64_t total = 3,
                       const std::string& variables = "by adam\n'w' float32[3]") {
    return barrier().arrive(counter_, {rank, ticket, steps, aggregate, total, variables},
                            [&got](FifoQueue::Outcome outcome) {
                              EXPECT_FALSE(got.is_there);
                              got.is_there = true;
                              if (const Error* const error = std::get_if<Error>(&outcome)) {
                                got.error = error->message();
                                return;
                              }
                              const auto& all =
                                  std::get<FifoQueue::Elements>(outcome)[0].components;
                              const auto numbers = all[0].as<int64_t>();
                              got.decision.assign(numbers.begin(), numbers.end());
                              got.accepted = all[1].as<int64_t>()[0];
                              got.step = all[2].as<int64_t>()[0];
                            });
  }

  const std::shared_ptr<ByteBudget> budget_ = ByteBudget::create(1 << 20, "ps/0");
  Variable counter_{"global_step", {DType::kInt64, {}}, budget_};
};

TEST_F(ReplicaBarrierTest, DecidesInTheOrderOfTheRanks) {
  Got one, two;
  const int64_t second = ticket(2), first = ticket(1);
  EXPECT_NE(arrive(two, 2, second, {0, 0}), 0u);
  EXPECT_FALSE(two.is_there);
  EXPECT_THAT(barrier().awaited(),
              HasSubstr("step 0 of 'global_step' has 1 of 2 gradients; missing: rank 0, 1"));
  EXPECT_EQ(arrive(one, 1, first, {0, 0}), 0u);
  for (const Got* const got : {&one, &two}) {
    EXPECT_THAT(got->decision, ElementsAre(0, first, second));
    EXPECT_EQ(got->accepted, 1);
    EXPECT_EQ(got->step, 1);
  }
  EXPECT_EQ(globalStep(), 1);
}

TEST_F(ReplicaBarrierTest, ALateGradientGetsTheLastDecision) {
  Got one, two, late;
  const int64_t old = ticket(0);
  arrive(one, 1, ticket(1), {0});
  arrive(two, 2, ticket(2), {0});
  EXPECT_EQ(arrive(late, 0, old, {0}), 0u);
  EXPECT_EQ(late.decision, one.decision);
  EXPECT_EQ(late.accepted, 0);
  EXPECT_EQ(late.step, 1);
  Got half;
  EXPECT_EQ(arrive(half, 0, ticket(0), {1, 0, -1}), 0u) << "some variables have taken the step";
  EXPECT_EQ(half.accepted, 0);
  EXPECT_THAT(barrier().awaited(), HasSubstr("0 of 2"));
}

TEST_F(ReplicaBarrierTest, ARankCountsOnce) {
  Got dead, returned, other;
  const int64_t first = ticket(0);
  const auto wait = arrive(dead, 0, first, {0});
  barrier().cancel(wait);
  const GradientAccumulator::Ticket again = barrier().newTicket(0);
  EXPECT_EQ(again.arrived, first);
  EXPECT_NE(arrive(returned, 0, again.number, {0}), 0u) << "one rank is no two gradients";
  const int64_t own = ticket(1);
  arrive(other, 1, own, {0});
  EXPECT_FALSE(dead.is_there);
  EXPECT_THAT(returned.decision, ElementsAre(0, first, own));
  EXPECT_EQ(returned.accepted, 0);
  EXPECT_EQ(other.accepted, 1);
}

TEST_F(ReplicaBarrierTest, AnArrivalEndsTheOlderWaitOfItsRank) {
  Got older, newer;
  arrive(older, 0, ticket(0), {0});
  const auto wait = arrive(newer, 0, ticket(0), {0});
  EXPECT_NE(wait, 0u);
  EXPECT_THAT(older.error, HasSubstr("another client of rank 0 waits at 'global_step' now"));
  EXPECT_FALSE(newer.is_there);
  barrier().cancel(wait);
}

// Another client with the rank has begun a step.
TEST_F(ReplicaBarrierTest, AnOlderTicketOfTheRankIsVoid) {
  Got zombie;
  const int64_t old = ticket(0);
  ticket(0);
  EXPECT_EQ(arrive(zombie, 0, old, {0}), 0u);
  EXPECT_EQ(zombie.accepted, 0);
  EXPECT_EQ(zombie.decision.at(0), -1) << "there is no decision yet";
}

TEST_F(ReplicaBarrierTest, FewRanksBringSeveralEach) {
  Got first, second, other;
  EXPECT_EQ(arrive(first, 0, ticket(0), {0}, 3, 2), 0u);
  EXPECT_EQ(first.accepted, 1);
  EXPECT_EQ(first.step, 0);
  EXPECT_NE(arrive(second, 0, ticket(0), {0}, 3, 2), 0u);
  EXPECT_EQ(arrive(other, 1, ticket(1), {0}, 3, 2), 0u);
  EXPECT_EQ(second.step, 1);
}

TEST_F(ReplicaBarrierTest, SettingTheGlobalStepEndsTheWaits) {
  Got waits, later;
  arrive(waits, 0, ticket(0), {0});
  set(7);
  EXPECT_THAT(waits.error, HasSubstr("was set"));
  EXPECT_NE(arrive(later, 1, ticket(1), {7}), 0u);
  EXPECT_THAT(barrier().awaited(), HasSubstr("step 7 of 'global_step' has 1 of 2"));
  counter_.clear();
  EXPECT_THAT(later.error, HasSubstr("was set"));
}

// A restore may set the step that a gradient was computed for, with other values of variables.
TEST_F(ReplicaBarrierTest, NamesAtMostEightMissingRanks) {
  Got first, many;
  arrive(first, 0, ticket(0), {0}, 3, 2);
  EXPECT_THAT(barrier().awaited(), EndsWith("1 of 3 gradients; missing: rank 0, 1"));
  set(0);
  const auto wait = arrive(many, 3, ticket(3), {0}, 20, 20);
  EXPECT_THAT(barrier().awaited(),
              EndsWith("1 of 20 gradients; missing: rank 0, 1, 2, 4, 5, 6, 7, 8 and 11 more"));
  barrier().cancel(wait);
}

TEST_F(ReplicaBarrierTest, SettingTheGlobalStepVoidsGradientsThatAreUnderWay) {
  Got late, fresh;
  const int64_t before = ticket(0);
  set(0);
  EXPECT_EQ(arrive(late, 0, before, {0}), 0u);
  EXPECT_EQ(late.accepted, 0);
  EXPECT_EQ(late.decision.at(0), -1);
  const auto wait = arrive(fresh, 0, ticket(0), {0});
  EXPECT_NE(wait, 0u);
  barrier().cancel(wait);
}

TEST_F(ReplicaBarrierTest, VariablesOfAnotherCheckpointAreAnError) {
  set(7);
  Got before, beyond;
  arrive(before, 0, ticket(0), {7, 5});
  EXPECT_THAT(before.error, HasSubstr("has taken 5 steps, but the global step 'global_step' is 7"));
  arrive(beyond, 0, ticket(0), {9});
  EXPECT_THAT(beyond.error, HasSubstr("has taken 9 steps"));
}

TEST_F(ReplicaBarrierTest, FinishEndsTheWaitsUntilTheGlobalStepIsSet) {
  Got waits, again;
  arrive(waits, 0, ticket(0), {0});
  barrier().finish();
  EXPECT_THAT(waits.error, HasSubstr("was finished"));
  EXPECT_THAT(errorText([&] { arrive(again, 1, ticket(1), {0}); }), HasSubstr("is finished"));
  set(0);
  EXPECT_NE(arrive(again, 1, ticket(1), {0}), 0u);
  barrier().reset();
}

TEST_F(ReplicaBarrierTest, OtherNumbersOfReplicasAreRefused) {
  Got waits, other;
  const auto wait = arrive(waits, 0, ticket(0), {0}, 2, 3);
  EXPECT_THAT(errorText([&] { arrive(other, 1, ticket(1), {0}, 3, 3); }),
              HasSubstr("rank 1 aggregates 3 of 3 replicas, but others at 'global_step' aggregate "
                        "2 of 3"));
  barrier().cancel(wait);
}

// The numbers may change between steps; a client that comes for the step before can't take it.
TEST_F(ReplicaBarrierTest, AStepOfOtherNumbersOfReplicasIsNoStepToTake) {
  std::vector<Got> four(4);
  for (size_t i = 0; i < four.size(); ++i) {
    const auto rank = static_cast<int64_t>(i / 2);
    arrive(four[i], rank, ticket(rank), {0}, 4, 2);
  }
  EXPECT_EQ(globalStep(), 1);
  Got first, late;
  EXPECT_EQ(arrive(first, 0, ticket(0), {1}, 3, 2), 0u) << "the rank has one more to bring";
  EXPECT_EQ(first.accepted, 1);
  EXPECT_EQ(first.decision, (std::vector<int64_t>{-1, 0, 0, 0})) << "there is nothing to take";
  EXPECT_EQ(arrive(late, 1, ticket(1), {0}, 3, 2), 0u);
  EXPECT_THAT(late.error, HasSubstr("had 4 gradients, but rank 1 aggregates 3"));
}

// A step of some variables alone would leave the others behind.
TEST_F(ReplicaBarrierTest, OtherVariablesAreRefusedByName) {
  Got one, other, two;
  arrive(one, 0, ticket(0), {0});
  const int64_t second = ticket(1);
  const auto refusedWith = [&](const std::string& variables) {
    return errorText([&] { arrive(other, 1, second, {0}, 2, 3, variables); });
  };
  EXPECT_THAT(refusedWith("by adam\n'w' float32[3]\n'b' float32[]"),
              HasSubstr("rank 1 trains 'b' float32[], but the others at 'global_step' don't"));
  EXPECT_THAT(refusedWith("by adam"),
              HasSubstr("rank 1 doesn't train 'w' float32[3], as the others at 'global_step' do"));
  EXPECT_THAT(refusedWith("by adam\n'w' float32[4]"), HasSubstr("rank 1 trains 'w' float32[4]"));
  EXPECT_THAT(refusedWith("by sgd\n'w' float32[3]"), HasSubstr("rank 1 trains by sgd"));
  EXPECT_FALSE(one.is_there) << "the others go on";
  arrive(two, 1, second, {0});
  EXPECT_EQ(one.step, 1);
  EXPECT_THAT(errorText([&] { arrive(other, 2, ticket(2), {1}, 2, 3, "by sgd"); }),
              HasSubstr("give all clients the same graph"))
      << "between two steps, too";
  set(0);
  arrive(other, 2, ticket(2), {0}, 2, 3, "by sgd");
  EXPECT_FALSE(other.is_there) << "a run that begins anew has the variables of its first client";
  barrier().finish();
}

TEST_F(ReplicaBarrierTest, ItsMemoryIsOfTheBudget) {
  const uint64_t before = budget_->taken();
  Got one, two;
  const int64_t first = ticket(0), second = ticket(1);
  const uint64_t of_ranks = budget_->taken();
  EXPECT_GT(of_ranks, before);
  arrive(one, 0, first, {0});
  EXPECT_GT(budget_->taken(), of_ranks);
  arrive(two, 1, second, {0});
  const uint64_t decided = budget_->taken();
  EXPECT_GT(decided, of_ranks) << "the decision";
  for (int64_t step = 1; step < 9; ++step) {
    Got a, b;
    const int64_t of_a = ticket(0), of_b = ticket(1);
    arrive(a, 0, of_a, {step});
    arrive(b, 1, of_b, {step});
    EXPECT_EQ(budget_->taken(), decided);
  }
  barrier().reset();
  EXPECT_EQ(budget_->taken(), before);
}

TEST_F(ReplicaBarrierTest, WithoutRoomNothingChanges) {
  Got one, two;
  const int64_t first = ticket(0), second = ticket(1);
  arrive(one, 0, first, {0});
  {
    const ByteBudget::Share all = budget_->take(budget_->bytesMax() - budget_->taken(), "a test");
    EXPECT_THAT(errorText([&] { arrive(two, 1, second, {0}); }),
                HasSubstr("the replicas that meet at 'global_step'"));
    EXPECT_THAT(errorText([&] { ticket(2); }), HasSubstr("ps/0"));
  }
  EXPECT_EQ(globalStep(), 0);
  arrive(two, 1, second, {0});
  EXPECT_EQ(two.step, 1);
}

TEST_F(ReplicaBarrierTest, APauseHoldsTheDecisionUntilItIsResumed) {
  Got one, two, backup, pause;
  arrive(one, 0, ticket(0), {0});
  barrier().pause([&](const FifoQueue::Outcome&) { pause.is_there = true; });
  arrive(two, 1, ticket(1), {0});
  arrive(backup, 2, ticket(2), {0});
  EXPECT_FALSE(one.is_there || two.is_there || backup.is_there || pause.is_there);
  EXPECT_EQ(globalStep(), 0);
  EXPECT_THAT(barrier().awaited(), HasSubstr("paused for a checkpoint"));
  barrier().resume(counter_);
  EXPECT_TRUE(pause.is_there);
  EXPECT_EQ(globalStep(), 1);
  EXPECT_EQ(one.accepted, 1);
  EXPECT_EQ(two.accepted, 1);
  EXPECT_EQ(backup.accepted, 0);
  EXPECT_EQ(backup.decision, one.decision);
}

TEST_F(ReplicaBarrierTest, ResumingWithoutAPauseDecidesNothing) {
  Got one, two;
  arrive(one, 0, ticket(0), {0});
  barrier().resume(counter_);
  EXPECT_FALSE(one.is_there);
  arrive(two, 1, ticket(1), {0});
  EXPECT_EQ(globalStep(), 1);
}

// Their clients are gone, so the refusal doesn't speak of others.
TEST_F(ReplicaBarrierTest, AChangeAfterTheLastStepIsRefusedWithTheRemedy) {
  Got one, two, other;
  arrive(one, 0, ticket(0), {0});
  arrive(two, 1, ticket(1), {0});
  const int64_t next = ticket(0);
  const auto changed = [&](const std::string& variables) {
    return errorText([&] { arrive(other, 0, next, {1}, 2, 3, variables); });
  };
  EXPECT_THAT(changed("by sgd\n'w' float32[3]"),
              HasSubstr("rank 0 trains by sgd, but the clients of the last step at 'global_step' "
                        "didn't"));
  EXPECT_THAT(changed("by adam"), HasSubstr("reset the tasks' containers (Session::reset)"));
  EXPECT_THAT(changed("'w' float32[3]\nby adam"),
              HasSubstr("rank 0 describes the variables of the clients of the last step at "
                        "'global_step' in another order"));
  set(0);
  arrive(other, 0, ticket(0), {0}, 2, 3, "by sgd");
  EXPECT_EQ(other.error, "") << "the values are others now";
  barrier().finish();
}

TEST_F(ReplicaBarrierTest, APauseEndsWithTheValuesThatItIsOf) {
  for (const bool is_set : {true, false}) {
    std::string why;
    barrier().pause([&](const FifoQueue::Outcome& outcome) {
      ASSERT_TRUE(std::holds_alternative<Error>(outcome));
      why = std::get<Error>(outcome).message();
    });
    if (is_set) set(7);
    if (!is_set) counter_.clear();
    EXPECT_THAT(why, HasSubstr("was set, or its container reset, while its replicas were paused"));
  }
  EXPECT_ANY_THROW(barrier().resume(counter_)) << "the global step has no value";
}

TEST_F(ReplicaBarrierTest, AResumeEndsThePauseAlsoOfAGlobalStepWithoutAValue) {
  counter_.clear();
  bool is_there = false;
  barrier().pause([&](const FifoQueue::Outcome&) { is_there = true; });
  EXPECT_THAT(errorText([&] { barrier().resume(counter_); }), HasSubstr("has no value"));
  EXPECT_TRUE(is_there);
}

// The client that saves is lost: no thread here could count the step.
TEST_F(ReplicaBarrierTest, ACancelledPauseMakesThoseLateThatItHeld) {
  Got one, two, three, four;
  const Awaited::Wait pause = barrier().pause([](const FifoQueue::Outcome&) { FAIL(); });
  arrive(one, 0, ticket(0), {0});
  arrive(two, 1, ticket(1), {0});
  barrier().cancel(pause);
  EXPECT_EQ(one.accepted, 0);
  EXPECT_EQ(two.accepted, 0);
  EXPECT_EQ(one.decision[0], -1) << "nothing is to be taken";
  EXPECT_EQ(globalStep(), 0);
  arrive(three, 0, ticket(0), {0});
  arrive(four, 1, ticket(1), {0});
  EXPECT_EQ(globalStep(), 1);
  EXPECT_EQ(three.accepted, 1);
}

TEST_F(ReplicaBarrierTest, OfTwoPausesTheLastIsCancelled) {
  Got one, two;
  const auto none = [](const FifoQueue::Outcome&) { FAIL(); };
  const Awaited::Wait first = barrier().pause(none), second = barrier().pause(none);
  arrive(one, 0, ticket(0), {0});
  arrive(two, 1, ticket(1), {0});
  barrier().cancel(first);
  EXPECT_FALSE(one.is_there);
  barrier().cancel(second);
  EXPECT_TRUE(one.is_there && two.is_there);
}

}  // namespace
}  // namespace dtf::engine
