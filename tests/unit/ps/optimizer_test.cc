// Goldens: 20 steps against the same formulas in double precision, from TensorFlow 1's
// documentation.

#include "common/ps/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "common/base/random.h"
#include "common/ps/gradient_math.h"

namespace dtf::ps {
namespace {

using Kind = cluster::OptimizerSpec::Kind;

cluster::OptimizerSpec specOf(Kind kind, double learning_rate) {
  cluster::OptimizerSpec spec;
  spec.kind = kind;
  spec.learning_rate = learning_rate;
  return spec;
}

std::vector<float> randomValues(uint64_t seed, uint64_t stream, size_t n) {
  Random random(seed, stream);
  std::vector<float> values(n);
  for (float& value : values) value = random.uniform(-1, 1);
  return values;
}

// A shard's arrays and updates of them.
struct Trainer {
  Trainer(const cluster::OptimizerSpec& spec, std::vector<float> values)
      : clock(spec), w(std::move(values)), next(w.size()) {
    for (uint32_t slot = 0; slot < slotCount(spec); ++slot) {
      slots[slot].assign(w.size(), initialSlotValue(spec, slot));
    }
  }
  void step(const std::vector<std::vector<float>>& gradients, const std::vector<uint64_t>& cuts) {
    std::vector<const float*> pointers;
    for (const auto& gradient : gradients) pointers.push_back(gradient.data());
    UpdateArrays arrays{w.data(), next.data(), {slots[0].data(), slots[1].data()}, pointers};
    const UpdateConstants constants = clock.next();
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      updateRange(constants, arrays, cuts[i], cuts[i + 1]);
    }
    w.swap(next);
  }
  OptimizerClock clock;
  std::vector<float> w, next;
  std::vector<float> slots[2];
};

constexpr size_t kElements = 97;  // not a multiple of any vector's length
constexpr int kSteps = 20;

template <class Formula>
void expectGolden(const cluster::OptimizerSpec& spec, const Formula& formula) {
  const std::vector<float> start = randomValues(1, 0, kElements);
  Trainer trainer(spec, start);
  std::vector<double> w(start.begin(), start.end());
  for (int t = 1; t <= kSteps; ++t) {
    std::vector<std::vector<float>> gradients;
    for (uint64_t k = 0; k < 3; ++k) {
      gradients.push_back(randomValues(static_cast<uint64_t>(t) + 100, k, kElements));
    }
    trainer.step(gradients, {0, kElements});
    for (size_t i = 0; i < kElements; ++i) {
      const double g = (double{gradients[0][i]} + gradients[1][i] + gradients[2][i]) / 3;
      formula(t, i, g, w[i]);
      ASSERT_NEAR(trainer.w[i], w[i], 1e-6) << "step " << t << " element " << i;
    }
  }
}

TEST(Optimizer, GradientDescentFollowsItsFormula) {
  expectGolden(specOf(Kind::kGradientDescent, 0.1),
               [](int, size_t, double g, double& w) { w -= 0.1 * g; });
}

TEST(Optimizer, AdagradFollowsItsFormulaWithoutEpsilon) {
  std::vector<double> a(kElements, 0.1);
  expectGolden(specOf(Kind::kAdagrad, 0.05), [&](int, size_t i, double g, double& w) {
    a[i] += g * g;
    w -= 0.05 * g / std::sqrt(a[i]);
  });
}

TEST(Optimizer, AdamFollowsItsFormulaWithEpsilonHat) {
  std::vector<double> m(kElements), v(kElements);
  cluster::OptimizerSpec spec = specOf(Kind::kAdam, 0.01);
  spec.epsilon = 0.1;  // large enough to tell where it stands
  expectGolden(spec, [&](int t, size_t i, double g, double& w) {
    m[i] = 0.9 * m[i] + 0.1 * g;
    v[i] = 0.999 * v[i] + 0.001 * g * g;
    const double rate = 0.01 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
    w -= rate * m[i] / (std::sqrt(v[i]) + 0.1);
  });
}

TEST(Optimizer, AnySplitOfTheRangeGivesTheSameBits) {
  constexpr size_t kLong = 5000;  // more than two chunks
  for (const Kind kind : {Kind::kGradientDescent, Kind::kAdagrad, Kind::kAdam}) {
    for (const uint64_t contributions : {1u, 2u, 5u}) {
      Trainer whole(specOf(kind, 0.1), randomValues(1, 0, kLong));
      Trainer split(specOf(kind, 0.1), randomValues(1, 0, kLong));
      Random random(3, contributions);
      for (uint64_t t = 0; t < 3; ++t) {
        std::vector<std::vector<float>> gradients;
        for (uint64_t k = 0; k < contributions; ++k) {
          gradients.push_back(randomValues(t + 10, k, kLong));
        }
        std::vector<uint64_t> cuts = {0};
        while (cuts.back() < kLong) {
          cuts.push_back(std::min<uint64_t>(kLong, cuts.back() + 1 + random.below(700)));
        }
        whole.step(gradients, {0, kLong});
        split.step(gradients, cuts);
      }
      EXPECT_EQ(std::memcmp(whole.w.data(), split.w.data(), kLong * sizeof(float)), 0)
          << "kind " << static_cast<int>(kind) << " contributions " << contributions;
    }
  }
}

TEST(Optimizer, TheMeanIsSummedLeftToRight) {
  // (1e8 + 1) - 1e8 is 0 in float32, (1e8 - 1e8) + 1 is 1.
  Trainer trainer(specOf(Kind::kGradientDescent, 1), {0.0f, 0.0f});
  trainer.step({{1e8f, 1e8f}, {1.0f, -1e8f}, {-1e8f, 1.0f}}, {0, 2});
  EXPECT_EQ(trainer.w[0], 0.0f);
  EXPECT_EQ(trainer.w[1], -1.0f / 3.0f);
}

TEST(Optimizer, PaddingWithZeroGradientsStaysZero) {
  for (const Kind kind : {Kind::kGradientDescent, Kind::kAdagrad, Kind::kAdam}) {
    Trainer trainer(specOf(kind, 0.1), std::vector<float>(16));
    for (int t = 0; t < 5; ++t) trainer.step({std::vector<float>(16)}, {0, 16});
    EXPECT_EQ(trainer.w, std::vector<float>(16));
  }
}

TEST(Optimizer, FirstNonFiniteFindsInfinitiesAndNans) {
  std::vector<float> values = randomValues(5, 0, 10'000);
  values[17] = std::numeric_limits<float>::max();
  values[18] = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(firstNonFinite(values), std::nullopt);
  values[9'999] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(firstNonFinite(values), 9'999u);
  values[2'048] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(firstNonFinite(values), 2'048u);
  EXPECT_EQ(firstNonFinite({}), std::nullopt);
}

}  // namespace
}  // namespace dtf::ps
