// Goldens: 20 steps of every kind against the same formulas in double precision (golden.h). float32
// has 24 bits: 20 updates of values near 1 may be off by a few 1e-6.

#include "common/optimizer/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "tests/unit/optimizer/golden.h"
#include "tests/unit/optimizer/trainer.h"

namespace dtf::optimizer {
namespace {

using golden::Kind;
using golden::randomValues;

TEST(Optimizer, EveryKindFollowsItsFormulaForTwentySteps) {
  constexpr size_t kElements = 97;  // not a multiple of any vector's length
  for (const cluster::OptimizerSpec& spec : golden::allSpecs()) {
    const std::vector<float> start = randomValues(1, 0, kElements);
    Trainer trainer(spec, start);
    golden::Reference reference(spec, start);
    for (int t = 1; t <= kSteps; ++t) {
      std::vector<std::vector<float>> gradients;
      for (uint64_t k = 0; k < 3; ++k)
        gradients.push_back(randomValues(static_cast<uint64_t>(t) + 100, k, kElements));
      std::vector<double> mean(kElements);
      for (size_t i = 0; i < kElements; ++i)
        mean[i] = (double{gradients[0][i]} + gradients[1][i] + gradients[2][i]) / 3;
      trainer.step(gradients);
      reference.step(mean);
      for (size_t i = 0; i < kElements; ++i)
        ASSERT_NEAR(trainer.w()[i], reference.w[i], kTolerance)
            << golden::nameOf(spec) << " step " << t << " element " << i;
    }
    for (uint64_t i = kElements; i < trainer.padded; ++i) EXPECT_EQ(trainer.w()[i], 0);
  }
}

// Expected values from TensorFlow's own tests of FtrlOptimizer and AdagradOptimizer.
struct Known {
  cluster::OptimizerSpec spec;
  std::vector<float> start, gradient;
  int steps;
  std::vector<double> expected;
};

TEST(Optimizer, ReachesTheValuesThatTensorFlowsTestsExpect) {
  cluster::OptimizerSpec ftrl = cluster::defaultOptimizer(Kind::kFtrl);
  ftrl.learning_rate = 3;
  cluster::OptimizerSpec l1 = ftrl;
  l1.l1_regularization_strength = 0.001;
  cluster::OptimizerSpec l2 = l1;
  l2.l2_regularization_strength = 2;
  cluster::OptimizerSpec shrinkage = l2;
  shrinkage.l2_shrinkage_regularization_strength = 0.1;
  cluster::OptimizerSpec adagrad = cluster::defaultOptimizer(Kind::kAdagrad);
  adagrad.learning_rate = 3;
  const std::vector<float> g = {0.1f, 0.2f, 0.01f, 0.02f};
  const Known all[] = {
      {ftrl, {0, 0, 0, 0}, g, 3, {-2.60260963, -4.29698515, -0.28432083, -0.56694895}},
      {ftrl, {1, 2, 4, 3}, g, 3, {-2.55607247, -3.98729396, -0.28232238, -0.56096673}},
      {l1, {1, 2, 4, 3}, g, 10, {-7.66718769, -10.91273689, -0.93460727, -1.86147261}},
      {l2, {1, 2, 4, 3}, g, 10, {-0.24059935, -0.46829352, -0.02406147, -0.04830509}},
      {shrinkage, {1, 2, 4, 3}, g, 10, {-0.22578995, -0.44345796, -0.14378493, -0.13229476}},
      {adagrad,
       {1, 2, 3, 4},
       {0.1f, 0.1f, 0.01f, 0.01f},
       3,
       {-1.6026098728, -0.6026098728, 2.7156791687, 3.7156791687}}};
  for (const Known& known : all) {
    Trainer trainer(known.spec, known.start);
    for (int t = 0; t < known.steps; ++t) trainer.step({known.gradient});
    for (size_t i = 0; i < known.start.size(); ++i) {
      EXPECT_NEAR(trainer.w()[i], known.expected[i], 1e-5 * std::fabs(known.expected[i]))
          << golden::nameOf(known.spec) << " element " << i;
    }
  }
}

// Settings that all kinds share apply in this order: clip, then L2, then the average.
TEST(Optimizer, ClipsThenAddsL2ThenAverages) {
  cluster::OptimizerSpec spec = cluster::defaultOptimizer(Kind::kGradientDescent);
  spec.learning_rate = 0.5;
  spec.clip_by_value = 0.25;
  spec.weight_decay = 0.1;
  spec.moving_average_decay = 0.9;
  for (const size_t contributions : {1u, 2u}) {
    Trainer trainer(spec, {1, -2, 4});
    trainer.step(std::vector<std::vector<float>>(contributions, {0.2f, 3.0f, -3.0f}));
    const double w[] = {1 - 0.5 * (0.2 + 0.1), -2 - 0.5 * (0.25 - 0.2), 4 - 0.5 * (-0.25 + 0.4)};
    const double start[] = {1, -2, 4};
    for (int i = 0; i < 3; ++i) {
      EXPECT_NEAR(trainer.w()[i], w[i], 1e-6);
      EXPECT_NEAR(trainer.store.slot(0)[i], 0.9 * start[i] + 0.1 * w[i], 1e-6);
    }
  }
}

TEST(Optimizer, AdamWDecaysByTheLearningRateOfTheStep) {
  cluster::OptimizerSpec spec = cluster::defaultOptimizer(Kind::kAdamW);
  spec.weight_decay = 0.5;
  spec.learning_rate = 0.5;
  spec.schedule.kind = cluster::LearningRateSchedule::Kind::kExponential;
  spec.schedule.decay_steps = 1;
  spec.schedule.decay_rate = 0.5;
  Trainer trainer(spec, {8});
  trainer.step({{0}});  // the moments stay 0
  EXPECT_FLOAT_EQ(trainer.w()[0], 8 * 0.75);
  trainer.step({{0}});
  EXPECT_FLOAT_EQ(trainer.w()[0], 8 * 0.75 * 0.875);
}

TEST(Optimizer, TheMeanIsSummedLeftToRight) {
  // (1e8 + 1) - 1e8 is 0 in float32, (1e8 - 1e8) + 1 is 1.
  cluster::OptimizerSpec spec;
  spec.learning_rate = 1;
  Trainer trainer(spec, {0.0f, 0.0f});
  trainer.step({{1e8f, 1e8f}, {1.0f, -1e8f}, {-1e8f, 1.0f}});
  EXPECT_EQ(trainer.w()[0], 0.0f);
  EXPECT_EQ(trainer.w()[1], -1.0f / 3.0f);
}

TEST(Optimizer, SlotsHaveTensorFlowsNamesAndInitialValues) {
  const auto slots = [](cluster::OptimizerSpec spec) {
    std::string text;
    for (uint32_t i = 0; i < slotCount(spec); ++i) {
      text += slotName(spec, i) +
              (isMovingAverage(spec, i)         ? ""
               : initialSlotValue(spec, i) == 1 ? "=1"
                                                : "") +
              " ";
    }
    return text;
  };
  cluster::OptimizerSpec rmsprop = cluster::defaultOptimizer(Kind::kRmsProp);
  EXPECT_EQ(slots(rmsprop), "RMSProp=1 RMSProp_1 ");
  rmsprop.centered = true;
  rmsprop.moving_average_decay = 0.5;
  EXPECT_EQ(slots(rmsprop), "RMSProp=1 RMSProp_1 RMSProp_2 ExponentialMovingAverage ");
  EXPECT_EQ(slotCount(rmsprop), kSlotsMax);
  EXPECT_EQ(slots(cluster::defaultOptimizer(Kind::kGradientDescent)), "");
  EXPECT_EQ(slots(cluster::defaultOptimizer(Kind::kMomentum)), "Momentum ");
  EXPECT_EQ(slots(cluster::defaultOptimizer(Kind::kAdagrad)), "Adagrad ");
  EXPECT_EQ(slots(cluster::defaultOptimizer(Kind::kAdadelta)), "Adadelta Adadelta_1 ");
  EXPECT_EQ(slots(cluster::defaultOptimizer(Kind::kAdam)), "Adam Adam_1 ");
  EXPECT_EQ(slots(cluster::defaultOptimizer(Kind::kFtrl)), "Ftrl Ftrl_1 ");
  EXPECT_EQ(initialSlotValue(cluster::defaultOptimizer(Kind::kFtrl), 0), 0.1f);
  EXPECT_EQ(initialSlotValue(cluster::defaultOptimizer(Kind::kAdagrad), 0), 0.1f);
}

// Also beyond the step from which the powers no longer change.
TEST(OptimizerClock, ItsStateFollowsFromTheNumberOfApplies) {
  cluster::OptimizerSpec spec = cluster::defaultOptimizer(Kind::kAdam);
  spec.beta2 = 0.99;
  OptimizerClock clock(spec);
  for (uint64_t applies = 0; applies < 80'000; ++applies) {
    if (applies % 997 == 0) EXPECT_EQ(OptimizerClock::stateAfter(spec, applies), clock.state());
    clock.next();
  }
  EXPECT_EQ(OptimizerClock::stateAfter(spec, 80'000), clock.state());
  EXPECT_EQ(OptimizerClock::stateAfter(spec, uint64_t{1} << 32).applies, uint64_t{1} << 32);
}

TEST(OptimizerDeathTest, AnUpdateIsNeitherBackwardsNorInPlaceNorWithoutItsAverages) {
  OptimizerClock clock(cluster::defaultOptimizer(Kind::kGradientDescent));
  UpdateConstants constants = clock.next();
  std::vector<float> old(16, 1), result(16), gradient(16, 1);
  const float* gradients[] = {gradient.data()};
  UpdateArrays arrays{old.data(), result.data(), {}, gradients};
  updateRange(constants, arrays, 0, 16);
  EXPECT_FLOAT_EQ(result[15], 0.99f);
  EXPECT_DEATH(updateRange(constants, arrays, 16, 0), "begin <= end");
  constants.average_slot = 0;
  EXPECT_DEATH(updateRange(constants, arrays, 0, 16), "average_slot");
  constants.average_slot = kSlotsMax;
  arrays.new_parameters = old.data();
  EXPECT_DEATH(updateRange(constants, arrays, 0, 16), "old_parameters");
}

}  // namespace
}  // namespace dtf::optimizer
