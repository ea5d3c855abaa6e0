#include "common/arena/initial_value.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace dtf::arena {
namespace {

struct Moments {
  double mean = 0;
  double deviation = 0;
  float largest = 0;
};

Moments momentsOf(const Tensor& tensor) {
  Moments moments;
  const auto values = tensor.as<float>();
  for (const float value : values) {
    moments.mean += value / static_cast<double>(values.size());
    moments.largest = std::max(moments.largest, std::fabs(value));
  }
  for (const float value : values) moments.deviation += std::pow(value - moments.mean, 2);
  moments.deviation = std::sqrt(moments.deviation / static_cast<double>(values.size()));
  return moments;
}

TEST(InitialValue, GlorotUniformHasItsLimits) {
  const Moments moments = momentsOf(initialValue("glorot_uniform", Shape{300, 100}, 1, 0));
  const double limit = std::sqrt(6.0 / 400);
  EXPECT_LE(moments.largest, limit);
  EXPECT_GT(moments.largest, 0.99 * limit);
  EXPECT_NEAR(moments.mean, 0, 0.02 * limit);
  EXPECT_NEAR(moments.deviation, limit / std::sqrt(3.0), 0.01 * limit);
}

TEST(InitialValue, RandomUniformHasKerassLimits) {
  const Moments moments = momentsOf(initialValue("random_uniform", Shape{300, 100}, 1, 0));
  EXPECT_LE(moments.largest, 0.05F);
  EXPECT_GT(moments.largest, 0.99 * 0.05);
  EXPECT_NEAR(moments.deviation, 0.05 / std::sqrt(3.0), 0.0005);
}

TEST(InitialValue, TruncatedNormalStaysWithinTwoDeviations) {
  const Moments moments = momentsOf(initialValue("truncated_normal", Shape{400, 100}, 1, 0));
  EXPECT_LE(moments.largest, 2.0 / 20);
  // A normal distribution cut at two deviations keeps 0.8796 of its deviation.
  EXPECT_NEAR(moments.deviation, 0.8796 / 20, 0.001);
}

TEST(InitialValue, AWidthIsGivenWithTheName) {
  const Moments uniform = momentsOf(initialValue("random_uniform=0.5", Shape{300, 100}, 1, 0));
  EXPECT_LE(uniform.largest, 0.5F);
  EXPECT_NEAR(uniform.deviation, 0.5 / std::sqrt(3.0), 0.005);
  const Moments normal = momentsOf(initialValue("random_normal=0.5", Shape{300, 100}, 1, 0));
  EXPECT_GT(normal.largest, 1.5F);
  EXPECT_NEAR(normal.deviation, 0.5, 0.01);
  EXPECT_NEAR(momentsOf(initialValue("random_normal", Shape{300, 100}, 1, 0)).deviation, 0.05,
              0.001);
  const Moments cut = momentsOf(initialValue("truncated_normal=0.5", Shape{300, 100}, 1, 0));
  EXPECT_LE(cut.largest, 1.0F);
  EXPECT_NEAR(cut.deviation, 0.8796 * 0.5, 0.01);
}

// Each name gives its variance, with 300 inputs and 100 outputs.
TEST(InitialValue, VarianceScalingHasTheVarianceOfItsName) {
  const std::pair<const char*, double> kVariances[] = {
      {"glorot_uniform", 2.0 / 400}, {"glorot_normal", 2.0 / 400}, {"he_uniform", 2.0 / 300},
      {"he_normal", 2.0 / 300},      {"lecun_uniform", 1.0 / 300}, {"lecun_normal", 1.0 / 300}};
  for (const auto& [name, variance] : kVariances) {
    const Moments moments = momentsOf(initialValue(name, Shape{300, 100}, 1, 0));
    EXPECT_NEAR(moments.deviation, std::sqrt(variance), 0.02 * std::sqrt(variance)) << name;
    EXPECT_NEAR(moments.mean, 0, 0.03 * std::sqrt(variance)) << name;
  }
}

TEST(InitialValue, TheInputsOfAFilterAreThoseOfItsWholeWindow) {
  const double variance = 2.0 / (5 * 5 * 8);
  const Moments moments = momentsOf(initialValue("he_uniform", Shape{5, 5, 8, 64}, 1, 0));
  EXPECT_LE(moments.largest, std::sqrt(3 * variance) * 1.0001);
  EXPECT_NEAR(moments.deviation, std::sqrt(variance), 0.03 * std::sqrt(variance));
}

TEST(InitialValue, OrthogonalRowsOrColumnsAreOrthonormal) {
  for (const auto& size : {std::pair(12, 5), std::pair(5, 12), std::pair(7, 7)}) {
    const int rows = size.first, columns = size.second;
    const Tensor tensor = initialValue("orthogonal", Shape{rows, columns}, 3, 0);
    const auto values = tensor.as<float>();
    const bool wide = rows < columns;
    const int vectors = wide ? rows : columns, length = wide ? columns : rows;
    const auto element = [&](int vector, int i) {
      return values[static_cast<size_t>(wide ? vector * columns + i : i * columns + vector)];
    };
    for (int a = 0; a < vectors; ++a) {
      for (int b = 0; b <= a; ++b) {
        double product = 0;
        for (int i = 0; i < length; ++i) product += double{element(a, i)} * element(b, i);
        EXPECT_NEAR(product, a == b ? 1 : 0, 1e-6) << rows << " x " << columns;
      }
    }
  }
}

TEST(InitialValue, ZerosAreZeroAndOnesAreOne) {
  const Tensor ones = initialValue("ones", Shape{3}, 1, 0);
  EXPECT_TRUE(std::ranges::all_of(ones.as<float>(), [](float one) { return one == 1; }));
  EXPECT_EQ(momentsOf(initialValue("zeros", Shape{10}, 1, 0)).largest, 0);
  const Tensor constant = initialValue("constant=-0.25", Shape{3}, 1, 0);
  EXPECT_TRUE(std::ranges::all_of(constant.as<float>(), [](float each) { return each == -0.25F; }));
}

TEST(InitialValue, DependsOnSeedAndVariableAlone) {
  const auto values = [](uint64_t seed, uint32_t index) {
    const Tensor tensor = initialValue("glorot_uniform", Shape{4, 4}, seed, index);
    const auto span = tensor.as<float>();
    return std::vector<float>(span.begin(), span.end());
  };
  EXPECT_EQ(values(1, 0), values(1, 0));
  EXPECT_NE(values(1, 0), values(2, 0));
  EXPECT_NE(values(1, 0), values(1, 1));
}

TEST(InitialValue, ProgressGrowsToTheEnd) {
  std::vector<uint64_t> done;
  const Shape shape{3, static_cast<int64_t>(kInitialBlockElements)};
  const Tensor told = initialValue("glorot_uniform", shape, 1, 0,
                                   [&](uint64_t elements) { done.push_back(elements); });
  EXPECT_EQ(done, (std::vector<uint64_t>{kInitialBlockElements, 2 * kInitialBlockElements,
                                         3 * kInitialBlockElements}));
  const Tensor untold = initialValue("glorot_uniform", shape, 1, 0);
  EXPECT_TRUE(std::ranges::equal(told.as<float>(), untold.as<float>()));
}

}  // namespace
}  // namespace dtf::arena
