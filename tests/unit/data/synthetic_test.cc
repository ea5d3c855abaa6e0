#include "common/data/synthetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "common/base/error.h"
#include "common/data/label_check.h"

namespace dtf::data {
namespace {

using cluster::Problem;

// FNV-1a, as for the digits' golden value.
uint64_t digestOf(const Dataset& dataset) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const Part& part : dataset.parts())
    for (const uint8_t byte : part.bytes()) hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
}

TEST(Synthetic, IsTheSameForASeedAndAnotherForEachUse) {
  for (const Problem problem : {Problem::kFriedman, Problem::kLinear, Problem::kTags,
                                Problem::kCentres, Problem::kClicks}) {
    const auto draw = [problem](uint64_t seed, bool eval) {
      return digestOf(drawSynthetic(problem, 10, seed, eval, 100));
    };
    EXPECT_EQ(draw(1, false), draw(1, false));
    EXPECT_NE(draw(1, false), draw(1, true)) << "nobody evaluates on what was trained";
    EXPECT_NE(draw(1, false), draw(2, false));
  }
  const Dataset few = drawSynthetic(Problem::kLinear, 2, 1, false, 10);
  const Dataset many = drawSynthetic(Problem::kLinear, 2, 1, false, 100);
  EXPECT_TRUE(std::ranges::equal(few.features().bytes(),
                                 many.features().bytes().first(few.features().bytes().size())))
      << "an example doesn't depend on their number";
}

// Compares with the formula, computed by libm: the difference is the noise.
TEST(Synthetic, FriedmansNumberHasNoiseOfVarianceOne) {
  constexpr int64_t kCount = 20'000;
  const Dataset dataset = drawSynthetic(Problem::kFriedman, 2, 3, false, kCount);
  const std::span<const float> x = dataset.features().as<float>();
  const std::span<const float> y = dataset.labels().as<float>();
  double sum = 0, squares = 0, mean = 0, spread = 0;
  for (size_t i = 0; i < kCount; ++i) {
    const float* const row = &x[i * 10];
    const double clean = 10 * std::sin(M_PI * row[0] * row[1]) + 20 * std::pow(row[2] - 0.5, 2) +
                         10 * row[3] + 5 * row[4];
    sum += y[i] - clean;
    squares += std::pow(y[i] - clean, 2);
    mean += y[i] / kCount;
  }
  for (const float value : y) spread += std::pow(value - mean, 2) / kCount;
  EXPECT_NEAR(sum / kCount, 0, 0.03);
  EXPECT_NEAR(squares / kCount, 1, 0.03);
  EXPECT_NEAR(spread, 24.8, 0.7);
}

double shareRight(const Dataset& dataset, int64_t tag, size_t tags) {
  const auto rule = linearRule(3, tag);
  const std::span<const float> x = dataset.features().as<float>();
  int64_t right = 0;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    double sum = 0;
    for (size_t j = 0; j < rule.size(); ++j)
      sum += double{rule[j]} * x[static_cast<size_t>(i) * 10 + j];
    const size_t at = static_cast<size_t>(i) * tags + static_cast<size_t>(tag);
    const bool label = areClasses(dataset.labels().spec()) ? dataset.labels().as<int32_t>()[at] == 1
                                                           : dataset.labels().as<float>()[at] == 1;
    right += (sum > 0) == label ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(dataset.size());
}

// The rate of the best rule, if all of it were Gaussian: 1 - atan(0.2 / sqrt(1/3)) / pi = 0.894.
TEST(Synthetic, LinearClassesAndTagsAreRightAsOftenAsTheyShould) {
  const Dataset linear = drawSynthetic(Problem::kLinear, 2, 3, true, 20'000);
  EXPECT_NEAR(shareRight(linear, 0, 1), 0.89, 0.015);
  EXPECT_EQ(classesOf(linear.labels()), 2);
  const Dataset tags = drawSynthetic(Problem::kTags, 2, 3, true, 20'000);
  EXPECT_EQ(tags.labels().spec().shape, Shape{kTags});
  for (int64_t tag = 0; tag < kTags; ++tag)
    EXPECT_NEAR(shareRight(tags, tag, 4), 0.89, 0.02) << tag;
}

TEST(Synthetic, CentresHaveAsManyClassesAsAskedFor) {
  const Dataset dataset = drawSynthetic(Problem::kCentres, 10'000, 1, false, 50'000);
  EXPECT_GT(classesOf(dataset.labels()), 9'900);
  EXPECT_LE(classesOf(dataset.labels()), 10'000);
  EXPECT_EQ(dataset.features().spec().shape, Shape{kCentreFeatures});
  EXPECT_THROW(drawSynthetic(Problem::kCentres, 10, 1, false, 0), Error);
}

}  // namespace
}  // namespace dtf::data
