// Edge cases of the formulae, and the same bits for any split of an array.

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

TEST(OptimizerKernels, FtrlShrinksToAPositiveZeroAndKeepsNan) {
  cluster::OptimizerSpec spec = cluster::defaultOptimizer(Kind::kFtrl);
  spec.l1_regularization_strength = 1000;
  Trainer trainer(spec, {1, 1, 1});
  trainer.step({{0.5f, -0.5f, NAN}});
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(trainer.w()[i], 0);
    EXPECT_FALSE(std::signbit(trainer.w()[i])) << "element " << i;
  }
  EXPECT_TRUE(std::isnan(trainer.w()[2])) << "a broken training must show";
}

TEST(OptimizerKernels, FtrlOfAnotherPowerFollowsItsFormula) {
  cluster::OptimizerSpec spec = cluster::defaultOptimizer(Kind::kFtrl);
  spec.learning_rate = 0.1;
  spec.learning_rate_power = -0.8;
  const std::vector<float> start = randomValues(2, 0, 33);
  Trainer trainer(spec, start);
  golden::Reference reference(spec, start);
  for (int t = 0; t < kSteps; ++t) {
    const std::vector<float> g = randomValues(9, static_cast<uint64_t>(t), 33);
    trainer.step({g});
    reference.step({g.begin(), g.end()});
    for (size_t i = 0; i < 33; ++i) ASSERT_NEAR(trainer.w()[i], reference.w[i], kTolerance);
  }
}

TEST(OptimizerKernels, CenteredRmsPropStaysANumberWhereTheVarianceRoundsBelowZero) {
  cluster::OptimizerSpec spec = cluster::defaultOptimizer(Kind::kRmsProp);
  spec.centered = true;
  Trainer trainer(spec, {0, 0, 0});
  for (int t = 0; t < 400; ++t) trainer.step({{1000.f, 333.3f, 1e-4f}});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isfinite(trainer.w()[i])) << i;
}

TEST(OptimizerKernels, AnySplitOfTheRangeGivesTheSameBits) {
  constexpr size_t kLong = 5008;  // more than two chunks
  for (cluster::OptimizerSpec spec : golden::allSpecs()) {
    spec.clip_by_value = 0.5;
    spec.moving_average_decay = 0.9;
    for (const uint64_t contributions : {1u, 2u, 5u}) {
      Trainer whole(spec, randomValues(1, 0, kLong));
      Trainer split(spec, randomValues(1, 0, kLong));
      Random random(3, contributions);
      for (uint64_t t = 0; t < 3; ++t) {
        std::vector<std::vector<float>> gradients;
        for (uint64_t k = 0; k < contributions; ++k)
          gradients.push_back(randomValues(t + 10, k, kLong));
        std::vector<uint64_t> cuts = {0};
        while (cuts.back() < kLong)
          cuts.push_back(std::min<uint64_t>(kLong, cuts.back() + 16 + 16 * random.below(40)));
        whole.step(gradients);
        split.step(gradients, cuts);
      }
      EXPECT_EQ(std::memcmp(whole.w(), split.w(), kLong * sizeof(float)), 0)
          << golden::nameOf(spec) << " contributions " << contributions;
      for (uint32_t i = 0; i < whole.store.slotCount(); ++i)
        EXPECT_EQ(std::memcmp(whole.store.slot(i).data(), split.store.slot(i).data(),
                              kLong * sizeof(float)),
                  0)
            << golden::nameOf(spec) << " " << whole.store.slotName(i);
    }
  }
}

TEST(OptimizerKernels, PaddingWithZeroGradientsStaysZero) {
  for (const cluster::OptimizerSpec& spec : golden::allSpecs()) {
    Trainer trainer(spec, std::vector<float>(16));
    for (int t = 0; t < 5; ++t) trainer.step({std::vector<float>(16)});
    for (int i = 0; i < 16; ++i) EXPECT_EQ(trainer.w()[i], 0) << golden::nameOf(spec);
  }
}

}  // namespace
}  // namespace dtf::optimizer
