#include "common/ps/shard.h"

#include <gtest/gtest.h>

#include <functional>

#include "common/base/error.h"
#include "common/ps/declaration.h"
#include "tests/unit/ps/shard_driver.h"

namespace dtf::ps {
namespace {

using std::chrono::seconds;

constexpr Incarnation kOne{1};

class ShardTest : public ::testing::Test {
 protected:
  ShardTest() {
    model_.layout = makeLayout({{"v", Shape{16}, {{0, 0, 16}}}}, 1);
    model_.steps = 10;
  }
  // A process that has done all that comes before its first question for parameters.
  void declare(uint32_t rank, const ModelDeclaration& model) {
    shard_.join(rank, kOne);
    shard_.declare(rank, kOne, model);
  }
  // Why that is refused; "" when it is not.
  static std::string refusal(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  }
  WaitCallback recordWait(std::string& what) {
    what = "waits";
    return [&what](const WaitAnswer& answer) {
      const Error* error = std::get_if<Error>(&answer);
      what = error == nullptr ? "passed" : error->message();
    };
  }
  PushCallback recordError(std::string& what) {
    return [&what](const PushAnswer& answer) {
      const Error* error = std::get_if<Error>(&answer);
      what = error == nullptr ? "ok" : error->message();
    };
  }
  ManualClock clock_;
  InlineUpdateRunner runner_;
  Shard shard_{ShardOptions{.workers = 2}, clock_, runner_, nullptr};
  ModelDeclaration model_;
};

TEST_F(ShardTest, OthersWaitUntilTheChiefHasInitialised) {
  declare(1, model_);
  std::string what;
  shard_.waitInitialised(1, kOne, seconds(60), recordWait(what));
  EXPECT_EQ(what, "waits");
  shard_.join(0, kOne);
  EXPECT_TRUE(shard_.initialise(0, kOne, std::vector<float>(16, 4)));
  EXPECT_EQ(what, "passed");
  EXPECT_FALSE(shard_.initialise(0, kOne, std::vector<float>(16, 5)));
  shard_.pull(1, kOne, {}, [](const PushAnswer& answer) {
    EXPECT_EQ(std::get<PushReply>(answer).parameters->data()[0], 4) << "the first values stay";
  });
}

TEST_F(ShardTest, NamesTheChiefAndWhatIsUninitialisedWhenItNeverComes) {
  model_.layout = makeLayout({{"v", Shape{16}, {{0, 0, 16}}}, {"w", Shape{2}, {{0, 0, 2}}}}, 1);
  declare(1, model_);
  std::string what;
  shard_.waitInitialised(1, kOne, seconds(5), recordWait(what));
  clock_.advance(seconds(6));
  shard_.tick();
  EXPECT_EQ(what,
            "worker/1 has waited 5 s for the chief, worker/0, to initialise ps/0; "
            "without values: w, v; not there: worker/0 (awaited for 6.0 s)");
}

TEST_F(ShardTest, OnlyTheChiefInitialises) {
  declare(1, model_);
  EXPECT_THROW(shard_.initialise(1, kOne, std::vector<float>(16)), Error);
  shard_.join(0, kOne);
  EXPECT_THROW(shard_.initialise(0, kOne, std::vector<float>(8)), Error);
  EXPECT_FALSE(shard_.status().initialised);
}

TEST_F(ShardTest, RefusesStepsThatComeTooEarly) {
  std::string what;
  shard_.pull(0, kOne, {}, recordError(what));
  EXPECT_NE(what.find("worker/0 has not joined"), std::string::npos) << what;
  shard_.join(0, kOne);
  shard_.pull(0, kOne, {}, recordError(what));
  EXPECT_NE(what.find("before the model was declared"), std::string::npos) << what;
  declare(0, model_);
  shard_.pull(0, kOne, {}, recordError(what));
  EXPECT_NE(what.find("before the chief, worker/0, initialised it"), std::string::npos) << what;
}

TEST_F(ShardTest, RefusesADifferentDeclaration) {
  declare(0, model_);
  declare(1, model_);
  ModelDeclaration other = model_;
  other.steps = 11;
  try {
    declare(1, other);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_EQ(error.message(),
              "worker/1's TRAIN.yaml differs from the job's, which is worker/0's: steps is 11, the "
              "job's is 10; start all tasks with the same files");
  }
}

// Whoever came first isn't right for that: the chief is.
TEST_F(ShardTest, TheChiefsDeclarationIsTheJobsThoughItComesLater) {
  ModelDeclaration other = model_;
  other.settings = {{"data.seed", "2"}};
  model_.settings = {{"data.seed", "1"}};
  shard_.join(0, kOne);
  declare(1, other);
  std::string refused;
  shard_.waitInitialised(1, kOne, seconds(5), [&refused](const WaitAnswer& answer) {
    refused = std::get<Error>(answer).message();
  });
  EXPECT_EQ(refused, "");
  declare(0, model_);
  const std::string why =
      "worker/1's TRAIN.yaml differs from the job's, which is worker/0's: data.seed is 2, the "
      "job's "
      "is 1; start all tasks with the same files";
  EXPECT_EQ(refused, why);
  EXPECT_TRUE(shard_.initialise(0, kOne, std::vector<float>(shard_.elements())));
  // Its next process has the right file.
  shard_.waitInitialised(1, kOne, seconds(5), [&refused](const WaitAnswer& answer) {
    refused = "again: " + std::get<Error>(answer).message();
  });
  EXPECT_EQ(refused, "again: " + why);
  shard_.join(1, Incarnation{2});
  shard_.declare(1, Incarnation{2}, model_);
  bool goes_on = false;
  shard_.waitInitialised(1, Incarnation{2}, seconds(5), [&goes_on](const WaitAnswer& answer) {
    goes_on = std::holds_alternative<Arrived>(answer);
  });
  EXPECT_TRUE(goes_on);
}

// A process that was replaced may not have noticed yet.
TEST_F(ShardTest, AReplacedProcessDeclaresNothing) {
  shard_.join(0, kOne);
  shard_.join(0, Incarnation{2});
  EXPECT_EQ(refusal([&] { shard_.declare(0, kOne, model_); }),
            "fenced: worker/0 was replaced by a newer process; end this one");
  EXPECT_FALSE(shard_.declared());
  EXPECT_NE(refusal([&] { shard_.declare(1, kOne, model_); }).find("has not joined"),
            std::string::npos);
  EXPECT_FALSE(shard_.declared());
}

TEST_F(ShardTest, OnlyWhoHasDeclaredTheJobsModelIsGivenParameters) {
  declare(0, model_);
  shard_.join(1, kOne);
  EXPECT_EQ(refusal([&] { shard_.checkDeclared(0, kOne); }), "");
  EXPECT_NE(refusal([&] {
              shard_.checkDeclared(1, kOne);
            }).find("worker/1 has not declared the model to ps/0"),
            std::string::npos);
  shard_.declare(1, kOne, model_);
  EXPECT_EQ(refusal([&] { shard_.checkDeclared(1, kOne); }), "");
  shard_.join(1, Incarnation{2});
  EXPECT_NE(refusal([&] { shard_.checkDeclared(1, Incarnation{2}); }), "")
      << "each process says it of itself";
}

TEST_F(ShardTest, AFailureEndsTheJobOnlyFromWhoTakesPartInIt) {
  const auto push = [&](uint32_t rank, Incarnation incarnation) {
    const std::vector<float> gradient(16);
    shard_.pull(rank, incarnation, {}, [](const PushAnswer&) {});
    shard_.push({.rank = rank, .incarnation = incarnation, .gradient = gradient},
                [](const PushAnswer& answer) {
                  EXPECT_TRUE(std::holds_alternative<PushReply>(answer))
                      << std::get<Error>(answer).message();
                });
  };
  const auto whyNot = [&](uint32_t rank, Incarnation incarnation) {
    return refusal([&] { shard_.checkMayEndJob(rank, incarnation); });
  };
  shard_.join(0, kOne);
  EXPECT_EQ(whyNot(0, kOne), "") << "nobody trains yet: the others would wait for it";
  declare(0, model_);
  declare(1, model_);
  ASSERT_TRUE(shard_.initialise(0, kOne, std::vector<float>(16)));
  push(0, kOne);
  push(1, kOne);
  EXPECT_EQ(whyNot(1, kOne), "");
  shard_.join(1, Incarnation{2});
  EXPECT_EQ(whyNot(1, Incarnation{2}),
            "worker/1 came to a job that trains without it, so its failure doesn't end the job");
  shard_.declare(1, Incarnation{2}, model_);
  shard_.push({.rank = 1, .incarnation = Incarnation{2}, .gradient = {}},
              [](const PushAnswer& answer) { EXPECT_TRUE(std::holds_alternative<Error>(answer)); });
  EXPECT_NE(whyNot(1, Incarnation{2}), "") << "a gradient that is refused makes nobody a trainer";
  push(1, Incarnation{2});
  EXPECT_EQ(whyNot(1, Incarnation{2}), "");
  EXPECT_NE(whyNot(1, kOne).find("fenced"), std::string::npos);
  shard_.finish(1, Incarnation{2});
  EXPECT_EQ(whyNot(1, Incarnation{2}), "worker/1 has finished, so its failure doesn't end the job");
  shard_.join(1, Incarnation{3});
  shard_.markLost(0);
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
  EXPECT_NE(refusal([&] { shard_.leave(1, Incarnation{2}, "tired"); }), "") << "it never joined";
  EXPECT_EQ(what, "waits");
  shard_.leave(1, kOne, "lost ps/1");
  EXPECT_EQ(what,
            "worker/1 was lost (it has left: lost ps/1) in step 0; sync training needs all 2 "
            "workers");
  EXPECT_EQ(shard_.status().members[1].state, MemberState::kLost);
  shard_.finish(0, kOne);
  shard_.leave(0, kOne, "lost ps/1, too");
  EXPECT_EQ(shard_.status().members[0].state, MemberState::kFinished) << "it is no loss";
}

// Without the chief nobody knows who is right.
TEST_F(ShardTest, TwoWorkersThatDifferBeforeTheChiefHasDeclaredAreNamedBoth) {
  Shard three(ShardOptions{.workers = 3}, clock_, runner_, nullptr);
  three.join(1, kOne);
  three.declare(1, kOne, model_);
  ModelDeclaration other = model_;
  other.steps = 11;
  three.join(2, kOne);
  try {
    three.declare(2, kOne, other);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "worker/2's TRAIN.yaml differs from that of worker/1, which came first: steps is 11, "
              "worker/1's is 10; start all tasks with the same files");
  }
}

TEST_F(ShardTest, ARestartedChiefWithAnotherFileIsRefusedOnceTheJobRuns) {
  declare(1, model_);
  declare(0, model_);
  ASSERT_TRUE(shard_.initialise(0, kOne, std::vector<float>(shard_.elements())));
  ModelDeclaration other = model_;
  other.steps = 11;
  try {
    declare(0, other);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "worker/0's TRAIN.yaml differs from the job's, which runs already: steps is 11, the "
              "job's is 10; start all tasks with the same files");
  }
}

TEST_F(ShardTest, EndsWhenAllWorkersHaveFinished) {
  declare(0, model_);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_FALSE(shard_.status().all_finished);
    shard_.join(rank, kOne);
    shard_.finish(rank, kOne);
  }
  EXPECT_TRUE(shard_.status().all_finished);
}

TEST_F(ShardTest, AFinishedWorkerHoldsNoBarrier) {
  shard_.join(0, kOne);
  shard_.join(1, kOne);
  std::string what;
  shard_.barrier(0, kOne, "end", Arrival::kFirst, seconds(10), recordWait(what));
  shard_.finish(1, kOne);
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
  driver.shard.barrier(1, kOne, "x", Arrival::kFirst, seconds(10), recordWait(what));
  EXPECT_EQ(driver.shard.status().callers_waiting, 2u);
}

TEST_F(ShardTest, MovingAveragesWaitForTheUpdateThatRuns) {
  HeldRunner runner;
  Shard shard(ShardOptions{}, clock_, runner, nullptr);
  ModelDeclaration model;
  model.layout = makeLayout({{"v", Shape{32'768}, {{0, 0, 32'768}}}}, 1);
  model.optimizer.learning_rate = 1;
  model.optimizer.moving_average_decay = 0.5;
  model.steps = 10;
  shard.join(0, kOne);
  shard.declare(0, kOne, model);
  shard.initialise(0, kOne, std::vector<float>(32'768));
  const auto values = std::make_shared<std::vector<float>>(32'768, -1.0f);
  shard.pull(0, kOne, {}, [](const PushAnswer&) {});
  shard.push({.rank = 0,
              .incarnation = kOne,
              .step = 0,
              .batch = 0,
              .sequence = 1,
              .gradient = *values,
              .owner = values},
             [](const PushAnswer&) {});
  std::optional<PushReply> averages;
  shard.pullAside(0, kOne, Shard::Aside::kAverages,
                  [&](const PushAnswer& a) { averages = std::get<PushReply>(a); });
  EXPECT_FALSE(averages) << "the update is changing them";
  EXPECT_TRUE(runner.finish());
  std::optional<PushReply> current;
  shard.pullAside(0, kOne, Shard::Aside::kParameters,
                  [&](const PushAnswer& a) { current = std::get<PushReply>(a); });
  ASSERT_TRUE(current);
  EXPECT_EQ(current->state.global_step, 1u);
  EXPECT_GT(current->parameters->data()[7], 0.5f) << "what the average moves to";
  ASSERT_TRUE(averages);
  EXPECT_EQ(averages->state.global_step, 1u);
  EXPECT_EQ(averages->parameters->data()[7], 0.5f);
}

TEST_F(ShardTest, AModelThatNoMemoryHoldsIsRefusedAndLeavesNothing) {
  Shard shard(ShardOptions{}, clock_, runner_, nullptr);
  ModelDeclaration model;
  const auto elements = static_cast<int64_t>(kShardElementsMax);  // and as much for each slot
  model.layout = makeLayout({{"v", Shape{elements}, {{0, 0, static_cast<uint64_t>(elements)}}}}, 1);
  model.optimizer = cluster::defaultOptimizer(cluster::OptimizerSpec::Kind::kRmsProp);
  model.optimizer.centered = true;
  model.steps = 10;
  shard.join(0, kOne);
  for (int time = 0; time < 2; ++time) {  // the second finds nothing of the first
    try {
      shard.declare(0, kOne, model);
      FAIL() << "this machine has more memory than any";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
      EXPECT_NE(error.message().find("has no memory"), std::string::npos) << error.message();
    }
    EXPECT_FALSE(shard.declared());
  }
}

TEST_F(ShardTest, AModelLargerThanTheHostIsRefusedBeforeItIsAllocated) {
  Shard shard(ShardOptions{.memory_bytes = 1000}, clock_, runner_, nullptr);
  shard.join(0, kOne);
  ModelDeclaration model;
  model.layout = makeLayout({{"v", Shape{128}, {{0, 0, 128}}}}, 1);
  model.optimizer = cluster::defaultOptimizer(cluster::OptimizerSpec::Kind::kMomentum);
  model.steps = 10;
  EXPECT_NE(refusal([&] { shard.declare(0, kOne, model); }).find("ps/0 has no memory"),
            std::string::npos)
      << "1024 bytes with the slot";
  EXPECT_FALSE(shard.declared());
  model.optimizer = {};
  EXPECT_EQ(refusal([&] { shard.declare(0, kOne, model); }), "");
}

// The chief's model takes the place of another: the host need not hold both.
TEST_F(ShardTest, WhatGivesWayToTheChiefsModelIsFreedFirst) {
  declare(1, model_);
  ModelDeclaration large;
  const auto elements = static_cast<int64_t>(kShardElementsMax);
  large.layout = makeLayout({{"v", Shape{elements}, {{0, 0, static_cast<uint64_t>(elements)}}}}, 1);
  large.optimizer = cluster::defaultOptimizer(cluster::OptimizerSpec::Kind::kRmsProp);
  large.optimizer.centered = true;
  large.steps = 10;
  shard_.join(0, kOne);
  EXPECT_NE(refusal([&] { shard_.declare(0, kOne, large); }).find("has no memory"),
            std::string::npos);
  EXPECT_FALSE(shard_.declared());
  EXPECT_NE(refusal([&] { shard_.checkDeclared(1, kOne); }), "");
  shard_.declare(0, kOne, model_);
  EXPECT_TRUE(shard_.initialise(0, kOne, std::vector<float>(16)));
}

// Who was lost while another model was declared is missed by the chief's steps all the same.
TEST_F(ShardTest, ALossBeforeTheChiefsDeclarationIsNotForgotten) {
  model_.replication = {cluster::ReplicationSpec::Mode::kSync, 2, 2};
  ModelDeclaration other = model_;
  other.steps = 11;
  shard_.join(0, kOne);
  declare(1, other);
  clock_.advance(seconds(1));
  shard_.markLost(1);
  declare(0, model_);
  ASSERT_TRUE(shard_.initialise(0, kOne, std::vector<float>(16)));
  const std::vector<float> gradient(16);
  std::string what = "waits";
  shard_.push({.rank = 0, .incarnation = kOne, .gradient = gradient}, recordError(what));
  EXPECT_EQ(what, "worker/1 was lost in step 0; sync training needs all 2 workers");
}

TEST_F(ShardTest, AnUpdateMayEndAfterItsShard) {
  HeldRunner runner;
  {
    Shard shard(ShardOptions{}, clock_, runner, nullptr);
    ModelDeclaration model;
    model.layout = makeLayout({{"v", Shape{32'768}, {{0, 0, 32'768}}}}, 1);
    model.steps = 10;
    shard.join(0, kOne);
    shard.declare(0, kOne, model);
    shard.initialise(0, kOne, std::vector<float>(32'768));
    auto values = std::make_shared<std::vector<float>>(32'768);
    shard.pull(0, kOne, {}, [](const PushAnswer&) {});
    shard.push({.rank = 0,
                .incarnation = kOne,
                .step = 0,
                .batch = 0,
                .sequence = 1,
                .gradient = *values,
                .owner = values},
               [](const PushAnswer&) { FAIL() << "dropped with its shard"; });
  }
  EXPECT_TRUE(runner.finish());
}

}  // namespace
}  // namespace dtf::ps
