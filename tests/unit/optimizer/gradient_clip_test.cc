#include "common/optimizer/gradient_clip.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace dtf::optimizer {
namespace {

TEST(GradientClip, AllGradientsAreScaledByTheirCommonNorm) {
  std::vector<float> a = {3, 0, 0}, b = {0, -4};
  const std::vector<std::span<float>> gradients = {a, b};
  EXPECT_EQ(clipByGlobalNorm(gradients, 2.5), 5.0);
  EXPECT_EQ(a, (std::vector<float>{1.5f, 0, 0}));
  EXPECT_EQ(b, (std::vector<float>{0, -2}));
}

TEST(GradientClip, ASmallGradientStaysAsItIs) {
  std::vector<float> a = {0.3f, 0.1f};
  const std::vector<std::span<float>> gradients = {a};
  EXPECT_NEAR(clipByGlobalNorm(gradients, 1), std::sqrt(0.1), 1e-7);
  EXPECT_EQ(a, (std::vector<float>{0.3f, 0.1f}));
}

TEST(GradientClip, SquaresDoNotOverflowAndZerosStayZero) {
  std::vector<float> a(5000, 1e30f), zeros(7);
  const std::vector<std::span<float>> gradients = {a, zeros};
  EXPECT_NEAR(clipByGlobalNorm(gradients, 1) / (1e30 * std::sqrt(5000.0)), 1, 1e-6);
  EXPECT_NEAR(a[4999], 1 / std::sqrt(5000.0), 1e-7);
  EXPECT_EQ(zeros, std::vector<float>(7));
  const std::vector<std::span<float>> only_zeros = {zeros};
  EXPECT_EQ(clipByGlobalNorm(only_zeros, 1), 0);
  EXPECT_EQ(zeros, std::vector<float>(7));
}

TEST(GradientClip, ANormThatIsNoNumberIsReportedAndNothingChanged) {
  std::vector<float> a = {1, std::numeric_limits<float>::quiet_NaN()}, b = {2};
  const std::vector<std::span<float>> gradients = {b, a};
  EXPECT_TRUE(std::isnan(clipByGlobalNorm(gradients, 0.5)));
  EXPECT_EQ(b[0], 2);
}

}  // namespace
}  // namespace dtf::optimizer
