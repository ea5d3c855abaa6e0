// Which models a shard accepts, and its reasons for rejecting others.

#include <gtest/gtest.h>

#include "tests/unit/shard/shard_fixture.h"

namespace dtf::shard {
namespace {

using std::chrono::seconds;

class ShardDeclaration : public ShardTest {};

TEST_F(ShardDeclaration, RefusesADifferentDeclaration) {
  declare(0, model_);
  declare(1, model_);
  arena::ModelDeclaration other = model_;
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

// The chief's declaration is right, not the first one.
TEST_F(ShardDeclaration, TheChiefsDeclarationIsTheJobsThoughItComesLater) {
  arena::ModelDeclaration other = model_;
  other.settings = {{"data.seed", "2"}};
  model_.settings = {{"data.seed", "1"}};
  shard_.workers().join(0, kOne);
  declare(1, other);
  std::string refused;
  shard_.waitInitialised(1, kOne, seconds(5), [&refused](const replication::WaitAnswer& answer) {
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
  // The worker's next process has the right file.
  shard_.waitInitialised(1, kOne, seconds(5), [&refused](const replication::WaitAnswer& answer) {
    refused = "again: " + std::get<Error>(answer).message();
  });
  EXPECT_EQ(refused, "again: " + why);
  shard_.workers().join(1, Incarnation{2});
  shard_.workers().declare(1, Incarnation{2}, model_);
  bool goes_on = false;
  shard_.waitInitialised(1, Incarnation{2}, seconds(5),
                         [&goes_on](const replication::WaitAnswer& answer) {
                           goes_on = std::holds_alternative<replication::Arrived>(answer);
                         });
  EXPECT_TRUE(goes_on);
}

// A replaced process may not have noticed yet that it is.
TEST_F(ShardDeclaration, AReplacedProcessDeclaresNothing) {
  shard_.workers().join(0, kOne);
  shard_.workers().join(0, Incarnation{2});
  EXPECT_EQ(refusal([&] { shard_.workers().declare(0, kOne, model_); }),
            "fenced: worker/0 was replaced by a newer process; end this one");
  EXPECT_FALSE(shard_.declaration().has_value());
  EXPECT_NE(refusal([&] { shard_.workers().declare(1, kOne, model_); }).find("has not joined"),
            std::string::npos);
  EXPECT_FALSE(shard_.declaration().has_value());
}

TEST_F(ShardDeclaration, OnlyWhoHasDeclaredTheJobsModelIsGivenParameters) {
  declare(0, model_);
  shard_.workers().join(1, kOne);
  EXPECT_EQ(refusal([&] { shard_.workers().checkDeclared(0, kOne); }), "");
  EXPECT_NE(refusal([&] {
              shard_.workers().checkDeclared(1, kOne);
            }).find("worker/1 has not declared the model to ps/0"),
            std::string::npos);
  shard_.workers().declare(1, kOne, model_);
  EXPECT_EQ(refusal([&] { shard_.workers().checkDeclared(1, kOne); }), "");
  shard_.workers().join(1, Incarnation{2});
  EXPECT_NE(refusal([&] { shard_.workers().checkDeclared(1, Incarnation{2}); }), "")
      << "each process says it of itself";
}

// Without the chief's declaration, either worker may be right.
TEST_F(ShardDeclaration, TwoWorkersThatDifferBeforeTheChiefHasDeclaredAreNamedBoth) {
  Shard three(ShardOptions{.workers = 3}, clock_, runner_, nullptr);
  three.workers().join(1, kOne);
  three.workers().declare(1, kOne, model_);
  arena::ModelDeclaration other = model_;
  other.steps = 11;
  three.workers().join(2, kOne);
  try {
    three.workers().declare(2, kOne, other);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "worker/2's TRAIN.yaml differs from worker/1's, which came first: steps is 11, "
              "worker/1's is 10; start all tasks with the same files");
  }
}

TEST_F(ShardDeclaration, ARestartedChiefWithAnotherFileIsRefusedOnceTheJobRuns) {
  declare(1, model_);
  declare(0, model_);
  ASSERT_TRUE(shard_.initialise(0, kOne, std::vector<float>(shard_.elements())));
  arena::ModelDeclaration other = model_;
  other.steps = 11;
  try {
    declare(0, other);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "worker/0's TRAIN.yaml differs from the running job's: steps is 11, the "
              "job's is 10; start all tasks with the same files");
  }
}

TEST_F(ShardDeclaration, AModelThatNoMemoryHoldsIsRefusedAndLeavesNothing) {
  Shard shard(ShardOptions{}, clock_, runner_, nullptr);
  arena::ModelDeclaration model;
  const auto elements = static_cast<int64_t>(kShardElementsMax);  // and as much for each slot
  model.layout =
      arena::makeLayout({{"v", Shape{elements}, {{0, 0, static_cast<uint64_t>(elements)}}}}, 1);
  model.optimizer = cluster::defaultOptimizer(cluster::OptimizerSpec::Kind::kRmsProp);
  model.optimizer.centered = true;
  model.steps = 10;
  shard.workers().join(0, kOne);
  for (int time = 0; time < 2; ++time) {  // the second one finds nothing of the first
    try {
      shard.workers().declare(0, kOne, model);
      FAIL() << "this machine has more memory than any";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
      EXPECT_NE(error.message().find("has no memory"), std::string::npos) << error.message();
    }
    EXPECT_FALSE(shard.declaration().has_value());
  }
}

TEST_F(ShardDeclaration, AModelLargerThanTheHostIsRefusedBeforeItIsAllocated) {
  Shard shard(ShardOptions{.memory_bytes = 1000}, clock_, runner_, nullptr);
  shard.workers().join(0, kOne);
  arena::ModelDeclaration model;
  model.layout = arena::makeLayout({{"v", Shape{128}, {{0, 0, 128}}}}, 1);
  model.optimizer = cluster::defaultOptimizer(cluster::OptimizerSpec::Kind::kMomentum);
  model.steps = 10;
  EXPECT_NE(refusal([&] { shard.workers().declare(0, kOne, model); }).find("ps/0 has no memory"),
            std::string::npos)
      << "1024 bytes with the slot";
  EXPECT_FALSE(shard.declaration().has_value());
  Shard of_worker(ShardOptions{.hosts = {.workers = 2}, .memory_bytes = 1000}, clock_, runner_,
                  nullptr);
  of_worker.workers().join(0, kOne);
  const std::string refused = refusal([&] { of_worker.workers().declare(0, kOne, model); });
  EXPECT_NE(refused.find("worker/0 has no memory"), std::string::npos) << refused;
  EXPECT_NE(refused.find("use more workers, or split"), std::string::npos) << refused;
  model.optimizer = {};
  EXPECT_EQ(refusal([&] { shard.workers().declare(0, kOne, model); }), "");
}

// The chief's model takes the place of another: the host need not hold both.
TEST_F(ShardDeclaration, WhatGivesWayToTheChiefsModelIsFreedFirst) {
  declare(1, model_);
  arena::ModelDeclaration large;
  const auto elements = static_cast<int64_t>(kShardElementsMax);
  large.layout =
      arena::makeLayout({{"v", Shape{elements}, {{0, 0, static_cast<uint64_t>(elements)}}}}, 1);
  large.optimizer = cluster::defaultOptimizer(cluster::OptimizerSpec::Kind::kRmsProp);
  large.optimizer.centered = true;
  large.steps = 10;
  shard_.workers().join(0, kOne);
  EXPECT_NE(refusal([&] { shard_.workers().declare(0, kOne, large); }).find("has no memory"),
            std::string::npos);
  EXPECT_FALSE(shard_.declaration().has_value());
  EXPECT_NE(refusal([&] { shard_.workers().checkDeclared(1, kOne); }), "");
  shard_.workers().declare(0, kOne, model_);
  EXPECT_TRUE(shard_.initialise(0, kOne, std::vector<float>(16)));
}

// A worker that was lost under another model still makes the steps of the chief's model fail.
TEST_F(ShardDeclaration, ALossBeforeTheChiefsDeclarationIsNotForgotten) {
  model_.replication = {cluster::ReplicationSpec::Mode::kSync, 2, 2};
  arena::ModelDeclaration other = model_;
  other.steps = 11;
  shard_.workers().join(0, kOne);
  declare(1, other);
  clock_.advance(seconds(1));
  shard_.workers().markLost(1);
  declare(0, model_);
  ASSERT_TRUE(shard_.initialise(0, kOne, std::vector<float>(16)));
  const std::vector<float> gradient(16);
  std::string what = "waits";
  shard_.push({.rank = 0, .incarnation = kOne, .gradient = gradient}, recordError(what));
  EXPECT_EQ(what, "worker/1 was lost in step 0; sync training needs all 2 workers");
}

}  // namespace
}  // namespace dtf::shard
