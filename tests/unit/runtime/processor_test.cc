#include "common/runtime/processor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <mutex>
#include <utility>
#include <vector>

namespace dtf::runtime {
namespace {

using Range = std::pair<int64_t, int64_t>;
using ::testing::ElementsAre;
using ::testing::Pair;

std::vector<Range> rangesOf(const Processor& cpu, int64_t units, int64_t unit_work, int64_t grain,
                            int parts_each) {
  std::vector<Range> ranges;
  std::mutex mutex;
  cpu.forRanges(units, unit_work, grain, parts_each, [&](int64_t begin, int64_t end, int thread) {
    const std::lock_guard lock(mutex);
    EXPECT_LT(thread, cpu.threads());
    ranges.emplace_back(begin, end);
  });
  std::sort(ranges.begin(), ranges.end());
  return ranges;
}

TEST(Processor, SplitsAtMultiplesOfTheGrain) {
  ComputePool pool(2);
  const Processor cpu(Isa::kBaseline, &pool);
  EXPECT_THAT(rangesOf(cpu, 100, kPartWork, 16, 1), ElementsAre(Pair(0, 48), Pair(48, 100)));
  EXPECT_THAT(rangesOf(cpu, 100, kPartWork, 60, 4), ElementsAre(Pair(0, 60), Pair(60, 100)));
  EXPECT_THAT(rangesOf(cpu, 100, kPartWork, 100, 4), ElementsAre(Pair(0, 100)));
  EXPECT_THAT(rangesOf(cpu, 3, kPartWork, 1, 4), ElementsAre(Pair(0, 1), Pair(1, 2), Pair(2, 3)));
}

TEST(Processor, SplitsNothingThatIsntWorthAnotherThread) {
  ComputePool pool(3);
  const Processor cpu(Isa::kBaseline, &pool);
  EXPECT_EQ(rangesOf(cpu, 1000, kPartWork / 1000, 1, 4).size(), 1U);
  EXPECT_EQ(rangesOf(cpu, 1000, kPartWork / 500, 1, 4).size(), 2U);
  EXPECT_EQ(rangesOf(cpu, 1000, kPartWork, 1, 4).size(), 12U) << "parts for each thread, at most";
  EXPECT_EQ(rangesOf(cpu.alone(), 1000, kPartWork, 1, 4).size(), 1U);
  EXPECT_THAT(rangesOf(cpu, 0, 1, 1, 4), ElementsAre(Pair(0, 0)));
}

// For example a pooling with a window of 2^20 times 2^20 over an image of one element.
TEST(Processor, WorkBeyondAllNumbersIsWorkForAllThreads) {
  ComputePool pool(2);
  const Processor cpu(Isa::kBaseline, &pool);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(saturatedProduct({int64_t{1} << 40, int64_t{1} << 40, 16}), kMost);
  EXPECT_EQ(saturatedProduct({int64_t{1} << 40, int64_t{1} << 40, 0}), 0);
  EXPECT_EQ(saturatedProduct({3, 5, 7}), 105);
  EXPECT_EQ(rangesOf(cpu, 1 << 20, kMost, 1, 4).size(), 8U);
}

}  // namespace
}  // namespace dtf::runtime
