#include "common/train/parameter_binding.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/arena/initial_value.h"
#include "common/base/clock.h"
#include "common/exchange/local_exchange_client.h"
#include "common/replication/epoch.h"
#include "common/train/initial_values.h"
#include "tests/unit/model/models.h"

namespace dtf::train {
namespace {

// Against real shards: gradient descent with rate 1 subtracts exactly the pushed gradient.
class ParameterBindingTest : public ::testing::Test {
 protected:
  void start(uint64_t partition_min_bytes) {
    const model::ModelGraph model = model::buildTrainingGraph(model::softmaxModel(), 10);
    cluster::PlacementSpec placement;
    placement.partition_min_bytes = partition_min_bytes;
    layout_ = layoutOf(model, placeModel(model.graph, placement, 2, 0));
    cluster::TrainSpec train;
    train.optimizer.learning_rate = 1;
    client_.declare(declarationOf(train, layout_, 1));
    const std::vector<Buffer> arenas = initialArenas(model, layout_, 1);
    std::vector<std::span<const float>> shards;
    for (const Buffer& arena : arenas)
      shards.emplace_back(arena.as<float>(), arena.bytes() / sizeof(float));
    client_.initialise(shards, replication::kFirstEpoch);
    client_.pull();
  }

  void checkRoundTrip() {
    ParameterBinding binding(layout_, client_);
    binding.gatherValues();
    const Tensor expected = arena::initialValue("glorot_uniform", Shape{784, 10}, 1, 0);
    EXPECT_TRUE(
        std::equal(expected.as<float>().begin(), expected.as<float>().end(), binding.value(0)));
    for (int64_t i = 0; i < 7840; ++i) binding.gradient(0)[i] = static_cast<float>(i);
    for (int64_t i = 0; i < 10; ++i) binding.gradient(1)[i] = -1;
    binding.scatterGradients();
    pushPull(client_, 0, 0, 0);
    binding.gatherValues();
    for (int64_t i = 0; i < 7840; ++i)
      ASSERT_EQ(binding.value(0)[i],
                expected.as<float>()[static_cast<size_t>(i)] - static_cast<float>(i));
    EXPECT_EQ(binding.value(1)[9], 1);
  }

  SystemClock clock_;
  exchange::LocalCluster cluster_{2, 1, clock_};
  exchange::LocalExchangeClient client_{cluster_, 0};
  arena::ParameterLayout layout_;
};

TEST_F(ParameterBindingTest, UsesWholeVariablesInPlace) {
  start(0);
  checkRoundTrip();
  ParameterBinding binding(layout_, client_);
  binding.gatherValues();
  EXPECT_EQ(binding.value(0), client_.view(exchange::Values::kParameters, 0));
  EXPECT_EQ(binding.gradient(1), client_.gradients(1));
}

TEST_F(ParameterBindingTest, GathersAndScattersSplitVariables) {
  start(1024);
  ASSERT_EQ(layout_.shards[0].slices.back().variable, layout_.shards[1].slices.back().variable);
  checkRoundTrip();
}

// A table of 7 x 3 with rows 0..3 on ps/0 and 4..6 on ps/1, and a dense variable.
TEST_F(ParameterBindingTest, DealsOutTheRowsOfSparseVariables) {
  layout_ = arena::makeLayout({{"table", Shape{7, 3}, {{0, 0, 12}, {1, 12, 9}}, std::nullopt, true},
                               {"dense", Shape{2}, {{0, 0, 2}}},
                               {"second", Shape{4, 1}, {{1, 0, 4}}, std::nullopt, true}},
                              2);
  cluster::TrainSpec train;
  train.optimizer.learning_rate = 1;
  client_.declare(declarationOf(train, layout_, 1));
  const std::vector<float> zeros(64);
  const std::vector<std::span<const float>> shards = {{zeros.data(), layout_.shards[0].elements},
                                                      {zeros.data(), layout_.shards[1].elements}};
  client_.initialise(shards, replication::kFirstEpoch);
  replication::StepState state = client_.pull();
  ParameterBinding binding(layout_, client_);
  const auto step = [&](const std::vector<int32_t>& ids) {
    std::vector<float> gradients;
    for (size_t i = 0; i < 3 * ids.size(); ++i) gradients.push_back(-static_cast<float>(i + 1));
    const optimizer::LookUp look_up{DType::kInt32, reinterpret_cast<const std::byte*>(ids.data()),
                                    ids.size(), gradients.data()};
    const std::vector<int32_t> second = {2};
    const std::vector<float> second_gradient = {-7};
    binding.gradient(1)[1] = -5;
    binding.setGradient(0, look_up);
    binding.setGradient(2, {DType::kInt32, reinterpret_cast<const std::byte*>(second.data()), 1,
                            second_gradient.data()});
    binding.scatterGradients();
    state = pushPull(client_, state.next_step, 0, 0);
    binding.gatherValues();
  };
  step({5, 1, 5});
  EXPECT_EQ(binding.gradientValues(0).size(), 6u) << "two rows";
  std::vector<float> table(21);
  const std::vector<float> row1 = {4, 5, 6};
  const std::vector<float> row5 = {1 + 7, 2 + 8, 3 + 9};
  std::ranges::copy(row1, table.begin() + 3);
  std::ranges::copy(row5, table.begin() + 15);
  EXPECT_EQ(std::vector<float>(binding.value(0), binding.value(0) + 21), table);
  EXPECT_EQ(binding.value(1)[1], 5);
  EXPECT_EQ(binding.value(2)[2], 7);
  step({4, 6});  // no row of ps/0
  for (int i = 0; i < 3; ++i) table[12 + static_cast<size_t>(i)] += static_cast<float>(1 + i);
  for (int i = 0; i < 3; ++i) table[18 + static_cast<size_t>(i)] += static_cast<float>(4 + i);
  EXPECT_EQ(std::vector<float>(binding.value(0), binding.value(0) + 21), table);
  EXPECT_EQ(binding.value(1)[1], 10);
}

}  // namespace
}  // namespace dtf::train
