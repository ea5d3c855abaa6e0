#include "common/runtime/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "common/base/random.h"
#include "tests/support/test_seed.h"

namespace dtf::runtime {
namespace {

TEST(MemoryPlan, SharesBytesBetweenBuffersThatNeverMeet) {
  const std::vector<Lifetime> buffers = {{1000, 0, 1}, {1000, 2, 3}};
  const MemoryPlan plan = planMemory(buffers);
  EXPECT_EQ(plan.bytes, 1024u);
  EXPECT_EQ(plan.offsets[0], plan.offsets[1]);
}

TEST(MemoryPlan, KeepsBuffersApartThatMeetInOneStep) {
  const std::vector<Lifetime> buffers = {{64, 0, 1}, {64, 1, 2}};
  EXPECT_EQ(planMemory(buffers).bytes, 128u);
}

TEST(MemoryPlan, OfNothingIsEmpty) {
  EXPECT_EQ(planMemory({}).bytes, 0u);
}

TEST(MemoryPlan, NeverOverlapsLiveBuffers) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<Lifetime> buffers;
    for (int i = 0; i < 60; ++i) {
      const auto first = static_cast<int>(random.below(40));
      buffers.push_back({random.below(5000), first, first + static_cast<int>(random.below(8))});
    }
    const MemoryPlan plan = planMemory(buffers);
    size_t most = 0;
    for (size_t i = 0; i < buffers.size(); ++i) {
      ASSERT_EQ(plan.offsets[i] % kPlanAlignment, 0u);
      ASSERT_LE(plan.offsets[i] + buffers[i].bytes, plan.bytes);
      most = std::max(most, buffers[i].bytes);
      for (size_t j = 0; j < i; ++j) {
        const bool meet =
            buffers[i].first <= buffers[j].last && buffers[j].first <= buffers[i].last;
        const bool overlap = plan.offsets[i] < plan.offsets[j] + buffers[j].bytes &&
                             plan.offsets[j] < plan.offsets[i] + buffers[i].bytes;
        ASSERT_FALSE(meet && overlap) << i << " and " << j;
      }
    }
    EXPECT_GE(plan.bytes, most);
  }
}

// Goes through the buffers in the order of time, and checks live ones in the order of their
// offsets.
TEST(MemoryPlan, OfVeryManyBuffersIsMadeAtOnce) {
  const uint64_t seed = dtf::testing::testSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  std::vector<Lifetime> buffers;
  size_t alive_at_once = 0;
  for (int i = 0; i < 50'000; ++i) {
    buffers.push_back({1 + random.below(500), i, i + static_cast<int>(random.below(20))});
    alive_at_once = std::max<size_t>(alive_at_once, 20);
  }
  const MemoryPlan plan = planMemory(buffers);
  EXPECT_LE(plan.bytes, 2 * alive_at_once * 512) << "as much as is alive, and its gaps";
  std::map<size_t, size_t> alive;  // offset -> buffer
  for (size_t i = 0; i < buffers.size(); ++i) {
    std::erase_if(alive,
                  [&](const auto& each) { return buffers[each.second].last < buffers[i].first; });
    ASSERT_EQ(plan.offsets[i] % kPlanAlignment, 0u);
    const auto [at, is_new] = alive.emplace(plan.offsets[i], i);
    ASSERT_TRUE(is_new);
    if (at != alive.begin()) {
      const size_t before = std::prev(at)->second;
      ASSERT_LE(plan.offsets[before] + buffers[before].bytes, plan.offsets[i]);
    }
    if (std::next(at) != alive.end()) {
      ASSERT_LE(plan.offsets[i] + buffers[i].bytes, std::next(at)->first);
    }
    ASSERT_LE(plan.offsets[i] + buffers[i].bytes, plan.bytes);
  }
}

}  // namespace
}  // namespace dtf::runtime
