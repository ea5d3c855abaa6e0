#include "common/optimizer/radix_sort.h"

#include <gtest/gtest.h>

#include "common/base/random.h"
#include "tests/support/test_seed.h"

namespace dtf::optimizer {
namespace {

// `count` numbers below `bound`, each with its index in the lower half.
std::vector<uint64_t> draw(Random& random, uint64_t count, uint64_t bound) {
  std::vector<uint64_t> entries;
  for (uint64_t i = 0; i < count; ++i) entries.push_back(random.below(bound) << 32 | i);
  return entries;
}

TEST(RadixSort, SortsAsComparisonsDo) {
  Random random(testing::testSeed(), 0);
  std::vector<uint64_t> spare;
  for (const uint64_t count : {0, 1, 2, 2047, 2048, 5000, 70'000})
    for (const uint64_t bound : {uint64_t{1}, uint64_t{2}, uint64_t{2047}, uint64_t{2048},
                                 uint64_t{2049}, uint64_t{1'000'001}, uint64_t{1} << 32}) {
      std::vector<uint64_t> entries = draw(random, count, bound);
      std::vector<uint64_t> expected = entries;
      std::ranges::sort(expected);
      radixSort(entries, spare, bound, [](uint64_t entry) { return entry >> 32; });
      ASSERT_EQ(entries, expected) << count << " below " << bound;
    }
}

TEST(RadixSort, OfWholeNumbersAsWell) {
  Random random(testing::testSeed(), 1);
  std::vector<uint32_t> entries, spare;
  for (int i = 0; i < 10'000; ++i) entries.push_back(static_cast<uint32_t>(random.below(300)));
  std::vector<uint32_t> expected = entries;
  std::ranges::sort(expected);
  radixSort(entries, spare, 300, [](uint32_t entry) { return uint64_t{entry}; });
  EXPECT_EQ(entries, expected);
}

}  // namespace
}  // namespace dtf::optimizer
