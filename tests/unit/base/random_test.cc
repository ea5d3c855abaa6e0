#include "common/base/random.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/base/random_streams.h"

namespace dtf {

// Known answers of the Random123 distribution (kat_vectors, philox4x32 10).
TEST(Philox, MatchesThePublishedVectors) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// A seed means the same in every version only as long as these don't change.
TEST(RandomStreams, KeepTheirNumbers) {
  EXPECT_EQ(streamOf(RandomStream::kTrainImages, 5), 0x0100000000000005u);
  EXPECT_EQ(streamOf(RandomStream::kEvalImages, 5), 0x0200000000000005u);
  EXPECT_EQ(streamOf(RandomStream::kBatchOrder, 5), 0x0300000000000005u);
  EXPECT_EQ(streamOf(RandomStream::kInitialValues, 5), 0x1000000000000005u);
  EXPECT_EQ(streamOf(RandomStream::kDropoutMasks, 5), 0x1100000000000005u);
}

TEST(RandomStreams, ANumberDoesNotReachIntoTheUse) {
  EXPECT_EQ(streamOf(RandomStream::kTrainImages, ~uint64_t{0}), 0x01ffffffffffffffu);
}

TEST(Random, SameSeedAndStreamGiveTheSameNumbers) {
  Random a(7, 3), b(7, 3), other_stream(7, 4), other_seed(8, 3);
  const uint64_t first = a.next64();
  EXPECT_EQ(first, b.next64());
  EXPECT_NE(first, other_stream.next64());
  EXPECT_NE(first, other_seed.next64());
}

TEST(Random, BelowStaysBelowAndReachesAll) {
  Random random(1);
  int seen[7] = {};
  for (int i = 0; i < 7000; ++i) ++seen[random.below(7)];
  for (const int count : seen) EXPECT_NEAR(count, 1000, 150);
}

TEST(Random, NormalHasMeanZeroAndVarianceOne) {
  Random random(1);
  double sum = 0, squares = 0;
  const int n = 100000;
  for (int i = 0; i < n; ++i) {
    const double x = random.normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / n, 0.0, 0.02);
  EXPECT_NEAR(squares / n, 1.0, 0.02);
}

TEST(Random, UniformStaysInItsRange) {
  Random random(1);
  for (int i = 0; i < 10000; ++i) {
    const float value = random.uniform(-2.0f, 3.0f);
    EXPECT_GE(value, -2.0f);
    EXPECT_LT(value, 3.0f);
    const double unit = random.uniform();
    EXPECT_GE(unit, 0.0);
    EXPECT_LT(unit, 1.0);
  }
}

}  // namespace dtf
