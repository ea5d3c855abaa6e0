#include "common/arena/codecs/top_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace dtf::arena {
namespace {

std::vector<float> arrives(const TopKCodec& codec, const std::vector<float>& values,
                           std::vector<float>& residual) {
  std::vector<std::byte> bytes(codec.bytes());
  std::vector<float> came(values.size(), -1.0F);
  codec.encode({values.data(), {}, residual.data()}, {0, values.size()}, bytes.data());
  codec.decode(bytes, {}, came.data());
  return came;
}

TEST(TopKCodec, AHundredthIsLessThanATwentiethOfTheBytes) {
  constexpr uint64_t kLarge = 1 << 20;
  EXPECT_LT(TopKCodec(0.01, kLarge).bytes(), 0.05 * kLarge * sizeof(float));
  EXPECT_EQ(TopKCodec(0.01, 4).bytes(), 8u) << "one value and its position";
  EXPECT_EQ(TopKCodec(0.01, 0).bytes(), 0u);
}

TEST(TopKCodec, TheRestIsDueTheNextTime) {
  const TopKCodec codec(0.25, 8);
  std::vector<float> residual(8);
  EXPECT_EQ(arrives(codec, {1, -9, 3, 0, 8, 2, -2, 0}, residual),
            (std::vector<float>{0, -9, 0, 0, 8, 0, 0, 0}));
  EXPECT_EQ(residual, (std::vector<float>{1, 0, 3, 0, 0, 2, -2, 0}));
  EXPECT_EQ(arrives(codec, {1, 1, 1, 1, 1, 1, -1, 1}, residual),
            (std::vector<float>{0, 0, 4, 0, 0, 3, 0, 0}))
      << "of 3 and -3 the first";
}

// For every share: few are found by the largest of groups, many by their order.
TEST(TopKCodec, TheLargestOfEachBlockAreChosenAndOfEqualsTheFirst) {
  std::minstd_rand random(9);
  for (const double share : {0.001, 0.01, 0.0625, 0.07, 0.3, 1.0})
    for (const uint64_t n : {uint64_t{1}, uint64_t{600}, kCodecBlock}) {
      const TopKCodec codec(share, n);
      std::vector<float> values(n), residual(n);
      const unsigned kinds = random() % 2 == 0 ? 7 : 100'000;  // with many equals, or few
      for (float& value : values)
        value =
            static_cast<float>(static_cast<int>(random() % kinds)) - static_cast<float>(kinds) / 2;
      std::vector<uint64_t> order(n);
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(
          order, [&](uint64_t a, uint64_t b) { return std::abs(values[a]) > std::abs(values[b]); });
      order.resize(
          std::max<uint64_t>(static_cast<uint64_t>(std::ceil(share * static_cast<double>(n))), 1));
      std::vector<float> due(n);
      for (const uint64_t at : order) due[at] = values[at];
      EXPECT_EQ(arrives(codec, values, residual), due) << share << " of " << n;
    }
}

// A sender may name any position.
TEST(TopKCodec, APositionBehindTheBlockIsLeftOut) {
  const TopKCodec codec(0.25, 4);
  std::vector<std::byte> bytes(codec.bytes(), std::byte{0xff});
  std::vector<float> came(4, -1.0F);
  codec.decode(bytes, {}, came.data());
  EXPECT_EQ(came, std::vector<float>(4));
}

}  // namespace
}  // namespace dtf::arena
