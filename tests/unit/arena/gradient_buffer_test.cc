#include "common/arena/gradient_buffer.h"

#include <gtest/gtest.h>

#include "common/base/shared_memory.h"
#include "tests/unit/arena/sparse_fixture.h"

namespace dtf::arena {
namespace {

// 16 dense elements, and a table of 1000 x 4.
GradientLayout tableLayout() {
  return GradientLayout(16 + 4000, {{16, 1000, 4}});
}

TEST(GradientBuffer, OfADenseShardIsOneArena) {
  GradientBuffer buffer(GradientLayout(32));
  buffer.values()[31] = 5;
  const Gradient shared = buffer.share();
  EXPECT_EQ(shared.values.size(), 32u);
  EXPECT_EQ(shared.values.data(), buffer.values());
  EXPECT_TRUE(shared.row_counts.empty());
}

TEST(GradientBuffer, IsAsLargeAsItsRows) {
  GradientBuffer buffer(tableLayout());
  EXPECT_EQ(buffer.share().values.size(), 16u) << "no rows at first";
  buffer.values()[3] = 7;
  buffer.setRows(std::vector<uint32_t>{10});
  EXPECT_EQ(buffer.share().values.size(), 16u + 50);
  EXPECT_EQ(buffer.values()[3], 7) << "the dense elements stay";
  const float* const at = buffer.values();
  buffer.setRows(std::vector<uint32_t>{9});
  EXPECT_EQ(buffer.values(), at) << "memory is kept";
  EXPECT_EQ(buffer.share().values.size(), 16u + 46);
  EXPECT_EQ(buffer.share().values.back(), 0) << "what fills the word";
  buffer.setRows(std::vector<uint32_t>{1000});
  EXPECT_EQ(buffer.share().values.size(), 16u + 5000);
  EXPECT_EQ(buffer.values()[3], 7);
}

TEST(GradientBuffer, ACopyKeepsWhatItWas) {
  GradientBuffer buffer(tableLayout());
  buffer.setRows(std::vector<uint32_t>{1});
  writeRows(buffer.layout(), {{{8, {1, 2, 3, 4}}}}, {1}, buffer.values());
  const Gradient copy = buffer.copy();
  const Gradient shared = buffer.share();
  writeRows(buffer.layout(), {{{8, {0, 0, 0, 0}}}}, {1}, buffer.values());
  EXPECT_EQ(buffer.layout().rows(copy, 0).values[3], 4);
  EXPECT_EQ(buffer.layout().rows(shared, 0).values[3], 0);
}

TEST(GradientBuffer, RowsThatTheLayoutDoesNotHaveAreABug) {
  GradientBuffer buffer(tableLayout());
  EXPECT_DEATH(buffer.setRows(std::vector<uint32_t>{1001}), "countFault");
}

TEST(GradientBuffer, MovesToSharedMemoryWithWhatWasWritten) {
  GradientBuffer buffer(GradientLayout(32));
  buffer.values()[31] = 5;
  const Gradient before = buffer.share();
  EXPECT_EQ(buffer.sharedMemory(), nullptr);
  buffer.moveToSharedMemory();
  EXPECT_EQ(buffer.values()[31], 5);
  EXPECT_EQ(reinterpret_cast<std::byte*>(buffer.values()), buffer.sharedMemory()->data());
  EXPECT_NE(before.values.data(), buffer.values());
  EXPECT_EQ(before.values[31], 5) << "whoever had it keeps it";
  const float* values = buffer.values();
  buffer.moveToSharedMemory();
  EXPECT_EQ(buffer.values(), values) << "it is there";
}

}  // namespace
}  // namespace dtf::arena
