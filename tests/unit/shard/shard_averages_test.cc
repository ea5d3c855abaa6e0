// Reads of the parameters, and of their moving averages, during the training.

#include <gtest/gtest.h>

#include "tests/unit/shard/shard_fixture.h"

namespace dtf::shard {
namespace {

class ShardAverages : public ShardTest {};

TEST_F(ShardAverages, MovingAveragesWaitForTheUpdateThatRuns) {
  HeldRunner runner;
  Shard shard(ShardOptions{}, clock_, runner, nullptr);
  arena::ModelDeclaration model;
  model.layout = arena::makeLayout({{"v", Shape{32'768}, {{0, 0, 32'768}}}}, 1);
  model.optimizer.learning_rate = 1;
  model.optimizer.moving_average_decay = 0.5;
  model.steps = 10;
  shard.workers().join(0, kOne);
  shard.workers().declare(0, kOne, model);
  shard.initialise(0, kOne, std::vector<float>(32'768));
  const auto values = std::make_shared<std::vector<float>>(32'768, -1.0f);
  shard.pull(0, kOne, {}, [](const replication::PushAnswer&) {});
  shard.push({.rank = 0,
              .incarnation = kOne,
              .step = 0,
              .batch = 0,
              .sequence = 1,
              .gradient = *values,
              .owner = values},
             [](const replication::PushAnswer&) {});
  std::optional<replication::PushReply> averages;
  shard.pullAside(0, kOne, Shard::Aside::kAverages, [&](const replication::PushAnswer& a) {
    averages = std::get<replication::PushReply>(a);
  });
  EXPECT_FALSE(averages) << "the update is changing them";
  EXPECT_TRUE(runner.finish());
  std::optional<replication::PushReply> current;
  shard.pullAside(0, kOne, Shard::Aside::kParameters, [&](const replication::PushAnswer& a) {
    current = std::get<replication::PushReply>(a);
  });
  ASSERT_TRUE(current);
  EXPECT_EQ(current->state.global_step, 1u);
  EXPECT_GT(current->parameters->data()[7], 0.5f) << "what the average moves to";
  ASSERT_TRUE(averages);
  EXPECT_EQ(averages->state.global_step, 1u);
  EXPECT_EQ(averages->parameters->data()[7], 0.5f);
}

}  // namespace
}  // namespace dtf::shard
