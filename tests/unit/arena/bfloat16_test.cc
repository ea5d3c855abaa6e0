#include "common/arena/bfloat16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/support/test_seed.h"

namespace dtf::arena {
namespace {

uint16_t bitsOf(float value) {
  uint16_t bits = 0;
  toBFloat16(&value, 1, &bits);
  return bits;
}

float rounded(float value) {
  const uint16_t bits = bitsOf(value);
  float widened = 0;
  fromBFloat16(&bits, 1, &widened);
  return widened;
}

// The distance to the neighbours is 2^-7 at 1, and 2 at 256.
TEST(BFloat16, RoundsToTheNearestAndOfTwoToTheEvenOne) {
  EXPECT_EQ(rounded(1.0F), 1.0F);
  EXPECT_EQ(rounded(1.0F + 0x1p-8F), 1.0F) << "halfway";
  EXPECT_EQ(rounded(1.0F + 3 * 0x1p-8F), 1.0F + 2 * 0x1p-7F) << "halfway";
  EXPECT_EQ(rounded(1.0F + 0x1p-8F + 0x1p-20F), 1.0F + 0x1p-7F);
  EXPECT_EQ(rounded(-257.0F), -256.0F);
  EXPECT_EQ(rounded(-257.5F), -258.0F);
  EXPECT_EQ(bitsOf(-0.0F), 0x8000);
}

TEST(BFloat16, KeepsInfinitiesNansAndTheSmallestNumbers) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(rounded(-kInfinity), -kInfinity);
  EXPECT_EQ(rounded(std::numeric_limits<float>::max()), kInfinity) << "beyond the largest";
  EXPECT_EQ(rounded(0x1.FEp127F), 0x1.FEp127F) << "the largest";
  EXPECT_EQ(rounded(0x1p-133F), 0x1p-133F) << "the smallest";
  // Includes a NaN whose set bits all lie in the cut half, and NaNs that rounding would carry to
  // infinity or to zero.
  for (const uint32_t bits : {0x7F800001U, 0x7FFFFFFFU, 0xFFFFFFFFU, 0x7FC00000U}) {
    EXPECT_TRUE(std::isnan(rounded(std::bit_cast<float>(bits)))) << std::hex << bits;
    EXPECT_EQ(std::signbit(rounded(std::bit_cast<float>(bits))), bits >> 31 == 1);
  }
}

// For every instruction set that the loops are compiled for, and for every length of their last
// part.
TEST(BFloat16, EachElementIsTheNearest) {
  SCOPED_TRACE(testing::testSeed());
  std::mt19937_64 random(testing::testSeed());
  for (size_t n = 0; n < 130; ++n) {
    std::vector<float> values(n), widened(n, -1);
    for (float& value : values) value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    std::vector<uint16_t> bits(n + 1, 0x1234);
    toBFloat16(values.data(), n, bits.data());
    fromBFloat16(bits.data(), n, widened.data());
    EXPECT_EQ(bits[n], 0x1234) << "beyond the end";
    for (size_t i = 0; i < n; ++i) {
      if (std::isnan(values[i])) {
        EXPECT_TRUE(std::isnan(widened[i]));
        continue;
      }
      if (std::fabs(values[i]) >= 0x1.FFp127F) continue;  // may be infinite
      const double error = std::fabs(double{values[i]} - double{widened[i]});
      for (const int step : {-1, 1}) {
        const float neighbour = std::bit_cast<float>(static_cast<uint32_t>(bits[i] + step) << 16);
        if (std::isnan(neighbour)) continue;  // beyond a zero or an infinity
        EXPECT_LE(error, std::fabs(double{values[i]} - double{neighbour})) << values[i];
      }
    }
  }
}

}  // namespace
}  // namespace dtf::arena
