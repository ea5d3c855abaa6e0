#include "common/shard/shard.h"

#include <gtest/gtest.h>

#include "tests/unit/shard/shard_fixture.h"

namespace dtf::shard {
namespace {

using std::chrono::seconds;

TEST_F(ShardTest, OthersWaitUntilTheChiefHasInitialised) {
  declare(1, model_);
  std::string what;
  shard_.waitInitialised(1, kOne, seconds(60), recordWait(what));
  EXPECT_EQ(what, "waits");
  shard_.workers().join(0, kOne);
  EXPECT_TRUE(shard_.initialise(0, kOne, std::vector<float>(16, 4)));
  EXPECT_EQ(what, "passed");
  EXPECT_FALSE(shard_.initialise(0, kOne, std::vector<float>(16, 5)));
  shard_.pull(1, kOne, {}, [](const replication::PushAnswer& answer) {
    EXPECT_EQ(std::get<replication::PushReply>(answer).parameters->data()[0], 4)
        << "the first values stay";
  });
}

TEST_F(ShardTest, NamesTheChiefAndWhatIsUninitialisedWhenItNeverComes) {
  model_.layout =
      arena::makeLayout({{"v", Shape{16}, {{0, 0, 16}}}, {"w", Shape{2}, {{0, 0, 2}}}}, 1);
  declare(1, model_);
  std::string what;
  shard_.waitInitialised(1, kOne, seconds(5), recordWait(what));
  clock_.advance(seconds(6));
  shard_.tick();
  EXPECT_EQ(what,
            "worker/1 has waited 5 s for the chief, worker/0, to initialise ps/0; "
            "without values: w, v; absent: worker/0 (awaited for 6.0 s)");
}

TEST_F(ShardTest, OnlyTheChiefInitialises) {
  declare(1, model_);
  EXPECT_THROW(shard_.initialise(1, kOne, std::vector<float>(16)), Error);
  shard_.workers().join(0, kOne);
  EXPECT_THROW(shard_.initialise(0, kOne, std::vector<float>(8)), Error);
  EXPECT_FALSE(shard_.status().initialised);
}

TEST_F(ShardTest, RefusesStepsThatComeTooEarly) {
  std::string what;
  shard_.pull(0, kOne, {}, recordError(what));
  EXPECT_NE(what.find("worker/0 has not joined"), std::string::npos) << what;
  shard_.workers().join(0, kOne);
  shard_.pull(0, kOne, {}, recordError(what));
  EXPECT_NE(what.find("before the model was declared"), std::string::npos) << what;
  declare(0, model_);
  shard_.pull(0, kOne, {}, recordError(what));
  EXPECT_NE(what.find("before the chief, worker/0, initialised it"), std::string::npos) << what;
}

TEST_F(ShardTest, AFailureEndsTheJobOnlyFromWhoTakesPartInIt) {
  const auto push = [&](uint32_t rank, Incarnation incarnation) {
    const std::vector<float> gradient(16);
    shard_.pull(rank, incarnation, {}, [](const replication::PushAnswer&) {});
    shard_.push({.rank = rank, .incarnation = incarnation, .gradient = gradient},
                [](const replication::PushAnswer& answer) {
                  EXPECT_TRUE(std::holds_alternative<replication::PushReply>(answer))
                      << std::get<Error>(answer).message();
                });
  };
  const auto whyNot = [&](uint32_t rank, Incarnation incarnation) {
    return refusal([&] { shard_.workers().checkMayEndJob(rank, incarnation); });
  };
  shard_.workers().join(0, kOne);
  EXPECT_EQ(whyNot(0, kOne), "") << "nobody trains yet: the others would wait for it";
  declare(0, model_);
  declare(1, model_);
  ASSERT_TRUE(shard_.initialise(0, kOne, std::vector<float>(16)));
  push(0, kOne);
  push(1, kOne);
  EXPECT_EQ(whyNot(1, kOne), "");
  shard_.workers().join(1, Incarnation{2});
  EXPECT_EQ(whyNot(1, Incarnation{2}),
            "worker/1 joined a job that trains without it, so its failure doesn't end the job");
  shard_.workers().declare(1, Incarnation{2}, model_);
  shard_.push({.rank = 1, .incarnation = Incarnation{2}, .gradient = {}},
              [](const replication::PushAnswer& answer) {
                EXPECT_TRUE(std::holds_alternative<Error>(answer));
              });
  EXPECT_NE(whyNot(1, Incarnation{2}), "") << "a gradient that is refused makes nobody a trainer";
  push(1, Incarnation{2});
  EXPECT_EQ(whyNot(1, Incarnation{2}), "");
  EXPECT_NE(whyNot(1, kOne).find("fenced"), std::string::npos);
  shard_.workers().finish(1, Incarnation{2});
  EXPECT_EQ(whyNot(1, Incarnation{2}), "worker/1 has finished, so its failure doesn't end the job");
  shard_.workers().join(1, Incarnation{3});
  shard_.workers().markLost(0);
  EXPECT_EQ(whyNot(1, Incarnation{3}), "") << "nobody is left who trains";
}

TEST_F(ShardTest, AWorkerThatLeavesIsMissedForTheReasonThatItGave) {
  model_.replication = {cluster::ReplicationSpec::Mode::kSync, 2, 2};
  declare(0, model_);
  declare(1, model_);
  ASSERT_TRUE(shard_.initialise(0, kOne, std::vector<float>(16)));
  const std::vector<float> gradient(16);
  std::string what = "waits";
  shard_.push({.rank = 0, .incarnation = kOne, .gradient = gradient}, recordError(what));
  EXPECT_NE(refusal([&] { shard_.workers().leave(1, Incarnation{2}, "tired"); }), "")
      << "it never joined";
  EXPECT_EQ(what, "waits");
  shard_.workers().leave(1, kOne, "lost ps/1");
  EXPECT_EQ(what,
            "worker/1 was lost (it has left: lost ps/1) in step 0; sync training needs all 2 "
            "workers");
  EXPECT_EQ(shard_.status().members[1].state, replication::MemberState::kLost);
  shard_.workers().finish(0, kOne);
  shard_.workers().leave(0, kOne, "lost ps/1, too");
  EXPECT_EQ(shard_.status().members[0].state, replication::MemberState::kFinished)
      << "it is no loss";
}

TEST_F(ShardTest, EndsWhenAllWorkersHaveFinished) {
  declare(0, model_);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_FALSE(shard_.status().all_finished);
    shard_.workers().join(rank, kOne);
    shard_.workers().finish(rank, kOne);
  }
  EXPECT_TRUE(shard_.status().all_finished);
}

TEST_F(ShardTest, AFinishedWorkerHoldsNoBarrier) {
  shard_.workers().join(0, kOne);
  shard_.workers().join(1, kOne);
  std::string what;
  shard_.workers().barrier(0, kOne, "end", replication::Arrival::kFirst, seconds(10),
                           recordWait(what));
  shard_.workers().finish(1, kOne);
  EXPECT_EQ(what, "passed");
}

TEST_F(ShardTest, ALostWorkersWaitsEndFenced) {
  declare(1, model_);
  std::string what;
  shard_.waitInitialised(1, kOne, seconds(60), recordWait(what));
  clock_.advance(seconds(11));
  shard_.tick();
  EXPECT_EQ(what, "fenced: worker/1 was lost (no heartbeat for 10 s)");
  EXPECT_EQ(shard_.status().missing, "worker/0 (awaited for 11.0 s), worker/1 (lost for 0.0 s)");
}

TEST_F(ShardTest, CountsThoseWhoWait) {
  ShardDriver driver(2, 2, 10);
  driver.push(0, 0);
  std::string what;
  driver.shard.workers().barrier(1, kOne, "x", replication::Arrival::kFirst, seconds(10),
                                 recordWait(what));
  EXPECT_EQ(driver.shard.status().callers_waiting, 2u);
}

TEST_F(ShardTest, AnUpdateMayEndAfterItsShard) {
  HeldRunner runner;
  {
    Shard shard(ShardOptions{}, clock_, runner, nullptr);
    arena::ModelDeclaration model;
    model.layout = arena::makeLayout({{"v", Shape{32'768}, {{0, 0, 32'768}}}}, 1);
    model.steps = 10;
    shard.workers().join(0, kOne);
    shard.workers().declare(0, kOne, model);
    shard.initialise(0, kOne, std::vector<float>(32'768));
    auto values = std::make_shared<std::vector<float>>(32'768);
    shard.pull(0, kOne, {}, [](const replication::PushAnswer&) {});
    shard.push({.rank = 0,
                .incarnation = kOne,
                .step = 0,
                .batch = 0,
                .sequence = 1,
                .gradient = *values,
                .owner = values},
               [](const replication::PushAnswer&) { FAIL() << "dropped with its shard"; });
  }
  EXPECT_TRUE(runner.finish());
}

// Heartbeats come while the chief reads the first values.
TEST_F(ShardTest, AShardWithoutValuesAwaitsNothingYet) {
  EXPECT_EQ(shard_.awaited().text, "");
  declare(0, model_);
  EXPECT_EQ(shard_.awaited().text, "");
  EXPECT_FALSE(shard_.awaited().is_return);
}

}  // namespace
}  // namespace dtf::shard
