#include "common/train/parameter_binding.h"

#include <gtest/gtest.h>

#include "common/base/clock.h"
#include "common/ps/epoch.h"
#include "common/ps/local_parameter_client.h"
#include "common/train/initial_values.h"
#include "tests/unit/model/models.h"

namespace dtf::train {
namespace {

// Against real shards: gradient descent with rate 1 subtracts exactly what was pushed.
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
    client_.initialise(shards, ps::kFirstEpoch);
    client_.pull();
  }

  void checkRoundTrip() {
    ParameterBinding binding(layout_, client_);
    binding.gatherValues();
    const Tensor expected = initialValue("glorot_uniform", Shape{784, 10}, 1, 0);
    EXPECT_TRUE(
        std::equal(expected.as<float>().begin(), expected.as<float>().end(), binding.value(0)));
    for (int64_t i = 0; i < 7840; ++i) binding.gradient(0)[i] = static_cast<float>(i);
    for (int64_t i = 0; i < 10; ++i) binding.gradient(1)[i] = -1;
    binding.scatterGradients();
    client_.exchange(0, 0, 0);
    binding.gatherValues();
    for (int64_t i = 0; i < 7840; ++i)
      ASSERT_EQ(binding.value(0)[i],
                expected.as<float>()[static_cast<size_t>(i)] - static_cast<float>(i));
    EXPECT_EQ(binding.value(1)[9], 1);
  }

  SystemClock clock_;
  ps::LocalCluster cluster_{2, 1, clock_};
  ps::LocalParameterClient client_{cluster_, 0};
  ps::ParameterLayout layout_;
};

TEST_F(ParameterBindingTest, UsesWholeVariablesInPlace) {
  start(0);
  checkRoundTrip();
  ParameterBinding binding(layout_, client_);
  binding.gatherValues();
  EXPECT_EQ(binding.value(0), client_.parameters(0));
  EXPECT_EQ(binding.gradient(1), client_.gradients(1));
}

TEST_F(ParameterBindingTest, GathersAndScattersSplitVariables) {
  start(1024);
  ASSERT_EQ(layout_.shards[0].slices[0].variable, layout_.shards[1].slices[0].variable);
  checkRoundTrip();
}

}  // namespace
}  // namespace dtf::train
