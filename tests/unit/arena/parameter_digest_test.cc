#include "common/arena/parameter_digest.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/base/checksum.h"

namespace dtf::arena {

namespace {

// Returns the digest of variables holding 0, 1, 2, ... in the given layout, with one element
// changed.
uint64_t digestOf(const ParameterLayout& layout, int64_t spoiled_element = -1) {
  std::vector<std::vector<float>> arenas;
  for (const ShardLayout& shard : layout.shards) {
    std::vector<float> arena(shard.elements, -7.0f);  // padding must not count
    for (const Slice& slice : shard.slices) {
      for (uint64_t i = 0; i < slice.count; ++i) {
        const auto element = static_cast<int64_t>(slice.begin + i);
        const float spoil = element == spoiled_element ? 0.5f : 0.0f;
        arena[slice.offset + i] =
            static_cast<float>(100 * slice.variable) + static_cast<float>(element) + spoil;
      }
    }
    arenas.push_back(std::move(arena));
  }
  return parameterDigest(layout, [&](uint32_t task) { return arenas[task].data(); });
}

}  // namespace

TEST(ParameterDigest, DoesNotDependOnWhereTheParametersAre) {
  const auto one = makeLayout({{"a", Shape{40}, {{0, 0, 40}}}, {"b", Shape{3}, {{0, 0, 3}}}}, 1);
  const auto three = makeLayout(
      {{"a", Shape{40}, {{2, 0, 16}, {0, 16, 16}, {1, 32, 8}}}, {"b", Shape{3}, {{1, 0, 3}}}}, 3);
  EXPECT_EQ(digestOf(one), digestOf(three));
}

// Anybody can compute the digest from the arrays of a checkpoint.
TEST(ParameterDigest, IsXxh3OfTheArraysOneBehindTheOther) {
  const auto split =
      makeLayout({{"a", Shape{20}, {{1, 0, 16}, {0, 16, 4}}}, {"b", Shape{2}, {{0, 0, 2}}}}, 2);
  std::vector<float> values;
  for (int i = 0; i < 20; ++i) values.push_back(static_cast<float>(i));
  values.insert(values.end(), {100, 101});
  EXPECT_EQ(digestOf(split), checksumOf({reinterpret_cast<const char*>(values.data()),
                                         values.size() * sizeof(float)}));
}

TEST(ParameterDigest, ChangesWithAnyElement) {
  const auto layout = makeLayout({{"a", Shape{40}, {{0, 0, 40}}}}, 1);
  for (int64_t element = 0; element < 40; ++element)
    EXPECT_NE(digestOf(layout), digestOf(layout, element));
}

}  // namespace dtf::arena
