#include "common/arena/codecs/bfloat16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace dtf::arena {
namespace {

// Ranges of odd sizes, one of them at the end.
const std::vector<ElementRange> kExactRanges = {{5, 8}, {9, 10}, {1'000, 1'002}};

TEST(BFloat16Codec, HasHalfTheBytesInWholeWords) {
  EXPECT_EQ(BFloat16Codec(0).bytes(), 0u);
  EXPECT_EQ(BFloat16Codec(2).bytes(), 8u);
  EXPECT_EQ(BFloat16Codec(4).bytes(), 8u);
  EXPECT_EQ(BFloat16Codec(1'000'002).bytes(), 2'000'008u);
}

TEST(BFloat16Codec, StatisticsAreNotRounded) {
  std::vector<float> values(1'002);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1.0F / static_cast<float>(i + 3);
  const BFloat16Codec codec(values.size(), kExactRanges);
  EXPECT_EQ(codec.bytes(), 2'024u) << "half of it, and 6 of 4 bytes, with what fills the words";
  std::vector<std::byte> bytes(codec.bytes());
  std::vector<float> decoded(values.size());
  EXPECT_EQ(codec.encode({.values = values.data()}, {0, values.size()}, bytes.data()),
            bytes.size());
  codec.decode(bytes, {}, decoded.data());
  for (size_t i = 0; i < values.size(); ++i) {
    const bool is_exact = std::ranges::any_of(
        kExactRanges, [i](auto& each) { return i >= each.begin && i < each.end; });
    EXPECT_NEAR(decoded[i], values[i], 0x1p-8F * values[i]);
    EXPECT_TRUE(!is_exact || decoded[i] == values[i]) << i;
  }
  EXPECT_NE(decoded[4], values[4]);
  EXPECT_NE(decoded[8], values[8]);
}

TEST(BFloat16Codec, OfTheFirstElementsTheRangesBehindThemAreNone) {
  EXPECT_EQ(BFloat16Codec(5, kExactRanges).bytes(), BFloat16Codec(5).bytes());
  EXPECT_EQ(BFloat16Codec(8, kExactRanges).bytes(), 12 + 12u);
}

}  // namespace
}  // namespace dtf::arena
