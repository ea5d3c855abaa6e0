#include "common/runtime/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/random.h"

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

}  // namespace
}  // namespace dtf::runtime
