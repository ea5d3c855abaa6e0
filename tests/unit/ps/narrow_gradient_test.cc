#include "common/ps/narrow_gradient.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "common/ps/gradient_buffer.h"

namespace dtf::ps {
namespace {

// Three dense elements and a gap, a table of 6 x 3 and one of 4 x 1.
GradientLayout tables() {
  return GradientLayout(26, {{4, 6, 3}, {22, 4, 1}});
}

// With rows 1 and 4 of the first table, and row 3 of the second: all is exact in bfloat16.
GradientBuffer filled() {
  GradientBuffer gradient(tables());
  const std::vector<uint32_t> counts = {2, 1};
  gradient.setRows(counts);
  std::iota(gradient.values(), gradient.values() + 4, 1.0F);
  const auto write = [&](size_t index, const std::vector<uint32_t>& ids, float first, size_t n) {
    float* const at = gradient.values() + gradient.layout().rowsAt(counts, index);
    std::memcpy(at, ids.data(), ids.size() * sizeof(uint32_t));
    std::iota(at + ids.size(), at + ids.size() + n, first);
  };
  write(0, {1, 4}, 10, 6);
  write(1, {3}, 20, 1);
  return gradient;
}

TEST(NarrowGradient, IsHalfOfOneInWholeWords) {
  EXPECT_EQ(NarrowLayout(0).bytes(), 0u);
  EXPECT_EQ(NarrowLayout(2).bytes(), 8u);
  EXPECT_EQ(NarrowLayout(4).bytes(), 8u);
  EXPECT_EQ(NarrowLayout(1'000'002).bytes(), 2'000'008u);
  const std::vector<uint32_t> counts = {2, 1}, none = {0, 0};
  EXPECT_EQ(narrowGradientBytes(tables(), NarrowLayout(4), counts), 8 + (8 + 12) + (4 + 4) + 4u);
  EXPECT_EQ(narrowGradientBytes(tables(), NarrowLayout(4), none), 8u);
}

TEST(NarrowGradient, RowsKeepTheirIds) {
  const GradientBuffer gradient = filled();
  NarrowGradient narrow(tables(), {});
  narrow.write(gradient.share());
  const std::vector<uint32_t> counts = gradient.share().row_counts;
  ASSERT_EQ(narrow.bytes().size(), narrowGradientBytes(tables(), NarrowLayout(4), counts));
  std::vector<float> widened(tables().elementsOf(counts), -1);
  widenGradient(tables(), NarrowLayout(4), counts, narrow.bytes().data(), widened.data());
  EXPECT_EQ(
      std::memcmp(widened.data(), gradient.share().values.data(), widened.size() * sizeof(float)),
      0);
  EXPECT_FALSE(tables().fault({widened, nullptr, counts}));
}

TEST(NarrowGradient, WithoutRowsOnlyItsDenseElementsAreSent) {
  GradientBuffer gradient(tables());
  std::iota(gradient.values(), gradient.values() + 4, 1.0F);
  NarrowGradient narrow(tables(), {});
  narrow.write(filled().share());
  narrow.write(gradient.share());
  ASSERT_EQ(narrow.bytes().size(), 8u);
  std::vector<float> widened(4);
  widenGradient(tables(), NarrowLayout(4), gradient.share().row_counts, narrow.bytes().data(),
                widened.data());
  EXPECT_EQ(widened, (std::vector<float>{1, 2, 3, 4}));
}

// 1 / 3, 1 / 4 and so on: few are exact in bfloat16.
std::vector<float> fractions(size_t n) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = 1.0F / static_cast<float>(i + 3);
  return values;
}

// Ranges of odd sizes, one of them at the end.
const std::vector<ElementRange> kExact = {{5, 8}, {9, 10}, {1'000, 1'002}};

TEST(NarrowGradient, StatisticsAreNotRounded) {
  const std::vector<float> values = fractions(1'002);
  const NarrowLayout layout(values.size(), kExact);
  EXPECT_EQ(layout.bytes(), 2'024u) << "half of it, and 6 of 4 bytes, with what fills the words";
  std::vector<std::byte> narrow(layout.bytes());
  std::vector<float> widened(values.size());
  EXPECT_EQ(layout.narrow(values.data(), 0, values.size(), narrow.data()), narrow.size());
  layout.widen(narrow.data(), widened.data());
  for (size_t i = 0; i < values.size(); ++i) {
    const bool is_exact =
        std::ranges::any_of(kExact, [i](auto& each) { return i >= each.begin && i < each.end; });
    EXPECT_NEAR(widened[i], values[i], 0x1p-8F * values[i]);
    if (is_exact) EXPECT_EQ(widened[i], values[i]) << i;
  }
  EXPECT_NE(widened[4], values[4]);
  EXPECT_NE(widened[8], values[8]);
}

TEST(NarrowGradient, OfTheFirstElementsTheRangesBehindThemAreNone) {
  EXPECT_EQ(NarrowLayout(5, kExact).bytes(), NarrowLayout(5).bytes());
  EXPECT_EQ(NarrowLayout(8, kExact).bytes(), 12 + 12u);
}

TEST(NarrowGradient, VariablesWithAMomentumAreExact) {
  const ParameterLayout layout = makeLayout({{"gamma", Shape{20}, {{0, 0, 20}}},
                                             {"moving_mean", Shape{20}, {{0, 0, 20}}, 0.99},
                                             {"moving_variance", Shape{3}, {{1, 0, 3}}, 0.99}},
                                            2);
  EXPECT_EQ(exactRanges(layout, 0), (std::vector<ElementRange>{{0, 20}}));
  EXPECT_EQ(exactRanges(layout, 1), (std::vector<ElementRange>{{0, 3}}));
}

TEST(NarrowGradient, WrittenBitByBitItIsTheSame) {
  const std::vector<float> values = fractions(1'002);
  for (const bool has_exact : {false, true}) {
    const std::vector<ElementRange> exact = has_exact ? kExact : std::vector<ElementRange>{};
    NarrowGradient whole(GradientLayout(values.size()), exact);
    NarrowGradient pieces(GradientLayout(values.size()), exact);
    whole.write({values, nullptr});
    for (int round = 0; round < 2; ++round) {
      pieces.begin();
      const uint64_t bytes = pieces.bytes().size();
      ASSERT_EQ(bytes, whole.bytes().size());
      uint64_t final_bytes = 0;
      for (uint64_t end = 0; end < values.size(); end += 1 + end % 3) {
        const uint64_t now = pieces.writeUpTo(values.data(), end);
        EXPECT_GE(now, final_bytes);
        final_bytes = now;
        EXPECT_EQ(pieces.writeUpTo(values.data(), end), now) << "said again";
        EXPECT_EQ(std::memcmp(pieces.bytes().data(), whole.bytes().data(), now), 0) << end;
      }
      EXPECT_EQ(pieces.writeUpTo(values.data(), values.size()), bytes);
      EXPECT_EQ(std::memcmp(pieces.bytes().data(), whole.bytes().data(), bytes), 0);
    }
  }
}

TEST(NarrowGradient, AnEmptyShardHasNothingToSend) {
  NarrowGradient narrow(GradientLayout(0), {});
  narrow.write({});
  EXPECT_TRUE(narrow.bytes().empty());
  narrow.begin();
  EXPECT_EQ(narrow.writeUpTo(nullptr, 0), 0u);
}

}  // namespace
}  // namespace dtf::ps
