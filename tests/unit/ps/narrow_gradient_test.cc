#include "common/ps/narrow_gradient.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(narrowBytes(0), 0u);
  EXPECT_EQ(narrowBytes(2), 8u);
  EXPECT_EQ(narrowBytes(4), 8u);
  EXPECT_EQ(narrowBytes(1'000'002), 2'000'008u);
  const std::vector<uint32_t> counts = {2, 1}, none = {0, 0};
  EXPECT_EQ(narrowBytes(tables(), counts), 8 + (8 + 12) + (4 + 4) + 4u);
  EXPECT_EQ(narrowBytes(tables(), none), 8u);
}

TEST(NarrowGradient, RowsKeepTheirIds) {
  const GradientBuffer gradient = filled();
  NarrowGradient narrow(tables());
  narrow.write(gradient.share());
  const std::vector<uint32_t> counts = gradient.share().row_counts;
  ASSERT_EQ(narrow.bytes().size(), narrowBytes(tables(), counts));
  std::vector<float> widened(tables().elementsOf(counts), -1);
  widen(tables(), counts, narrow.bytes().data(), widened.data());
  EXPECT_EQ(
      std::memcmp(widened.data(), gradient.share().values.data(), widened.size() * sizeof(float)),
      0);
  EXPECT_FALSE(tables().fault({widened, nullptr, counts}));
}

TEST(NarrowGradient, WithoutRowsOnlyItsDenseElementsAreSent) {
  GradientBuffer gradient(tables());
  std::iota(gradient.values(), gradient.values() + 4, 1.0F);
  NarrowGradient narrow(tables());
  narrow.write(filled().share());
  narrow.write(gradient.share());
  ASSERT_EQ(narrow.bytes().size(), 8u);
  std::vector<float> widened(4);
  widen(tables(), gradient.share().row_counts, narrow.bytes().data(), widened.data());
  EXPECT_EQ(widened, (std::vector<float>{1, 2, 3, 4}));
}

TEST(NarrowGradient, WrittenBitByBitItIsTheSame) {
  std::vector<float> values(1'002);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1.0F / static_cast<float>(i + 3);
  NarrowGradient whole(GradientLayout(values.size())), pieces(GradientLayout(values.size()));
  whole.write({values, nullptr});
  for (int round = 0; round < 2; ++round) {
    pieces.begin();
    const uint64_t whole_bytes = pieces.bytes().size();
    EXPECT_EQ(whole_bytes, narrowBytes(values.size()));
    EXPECT_EQ(pieces.writeUpTo(values.data(), 0), 0u);
    EXPECT_EQ(pieces.writeUpTo(values.data(), 7), 14u);
    EXPECT_EQ(pieces.writeUpTo(values.data(), 7), 14u);
    EXPECT_EQ(pieces.writeUpTo(values.data(), 1'001), 2'002u);
    EXPECT_EQ(pieces.writeUpTo(values.data(), 1'002), whole_bytes) << "with what fills the word";
    EXPECT_EQ(std::memcmp(pieces.bytes().data(), whole.bytes().data(), whole_bytes), 0);
  }
}

TEST(NarrowGradient, AnEmptyShardHasNothingToSend) {
  NarrowGradient narrow(GradientLayout(0));
  narrow.write({});
  EXPECT_TRUE(narrow.bytes().empty());
  narrow.begin();
  EXPECT_EQ(narrow.writeUpTo(nullptr, 0), 0u);
}

}  // namespace
}  // namespace dtf::ps
