#include "common/runtime/step_segments.h"

#include <gtest/gtest.h>

#include "common/base/random.h"

namespace dtf::runtime {
namespace {

using Segments = std::vector<SegmentPlan>;

TEST(StepSegments, WithoutTransfersThereIsOne) {
  EXPECT_EQ(planSegments(7, {}, {}, 4), (Segments{{0, 7, {}, {}}}));
  EXPECT_EQ(planSegments(0, {}, {}, 4), (Segments{{0, 0, {}, {}}}));
}

// Layers 0, 1 and 2 run at launches 0, 2 and 4; their gradients at 9, 7 and 5.
TEST(StepSegments, ABucketIsMovedWhileThoseBesideItAreComputed) {
  const std::vector<Transfer> up = {{0, 10, 0}, {1, 40, 2}, {2, 40, 4}};
  const std::vector<Transfer> down = {{0, 10, 9}, {1, 40, 7}, {2, 40, 5}};
  EXPECT_EQ(
      planSegments(10, up, down, 40),
      (Segments{
          {0, 2, {0}, {}}, {2, 4, {1}, {}}, {4, 6, {2}, {2}}, {6, 8, {}, {1}}, {8, 10, {}, {0}}}));
  EXPECT_EQ(planSegments(10, up, down, 80),
            (Segments{{0, 4, {0, 1}, {}}, {4, 8, {2}, {2, 1}}, {8, 10, {}, {0}}}))
      << "nothing is computed while the first is on its way: a quarter of a bucket is enough";
  EXPECT_EQ(planSegments(10, up, down, 1000), (Segments{{0, 10, {0, 1, 2}, {2, 1, 0}}}));
}

TEST(StepSegments, WhatOneLaunchNeedsComesTogether) {
  const std::vector<Transfer> up = {{0, 100, 3}, {1, 100, 3}, {2, 100, 3}};
  EXPECT_EQ(planSegments(5, up, {}, 1), (Segments{{0, 3, {}, {}}, {3, 5, {0, 1, 2}, {}}}));
  EXPECT_EQ(planSegments(5, {}, up, 1), (Segments{{0, 4, {}, {0, 1, 2}}, {4, 5, {}, {}}}));
}

TEST(StepSegments, OfALargeModelBucketsAreLarger) {
  std::vector<Transfer> both;
  for (size_t i = 0; i < 10'000; ++i) both.push_back({i, 5, i});
  EXPECT_LE(planSegments(10'000, both, {}, 5).size(), kCutsMax + 2);
  EXPECT_GE(planSegments(10'000, both, {}, 5).size(), kCutsMax / 2);
  EXPECT_LE(planSegments(10'000, both, both, 5).size(), 2 * kCutsMax + 3);
}

TEST(StepSegments, EachLaunchIsInOneAndEachTransferBesideItsOwn) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const size_t launches = 1 + random.below(40);
    std::vector<Transfer> up, down;
    for (size_t i = 0; i < random.below(20); ++i)
      up.push_back({i, 1 + random.below(100), random.below(launches)});
    for (size_t i = 0; i < random.below(20); ++i)
      down.push_back({i, 1 + random.below(100), random.below(launches)});
    const Segments segments = planSegments(launches, up, down, 1 + random.below(300));
    size_t end = 0, moved_up = 0, moved_down = 0;
    for (const SegmentPlan& segment : segments) {
      EXPECT_EQ(segment.begin, end);
      EXPECT_LT(segment.begin, segment.end);
      end = segment.end;
      const auto is_here = [&](const Transfer& transfer) {
        return segment.begin <= transfer.launch && transfer.launch < segment.end;
      };
      for (const size_t i : segment.uploads) EXPECT_TRUE(is_here(up.at(i)));
      for (const size_t i : segment.downloads) EXPECT_TRUE(is_here(down.at(i)));
      moved_up += segment.uploads.size();
      moved_down += segment.downloads.size();
    }
    EXPECT_EQ(end, launches);
    EXPECT_EQ(moved_up, up.size());
    EXPECT_EQ(moved_down, down.size());
  }
}

}  // namespace
}  // namespace dtf::runtime
