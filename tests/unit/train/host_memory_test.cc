#include "common/train/host_memory.h"

#include <gtest/gtest.h>

namespace dtf::train {

TEST(HostMemoryTest, IsWhatTheKernelSays) {
  const HostMemory memory = parseMemInfo(
      "MemTotal:       24033848 kB\nMemFree:          123 kB\nMemAvailable:   20000000 kB\n"
      "SwapTotal:       1000000 kB\n");
  EXPECT_EQ(memory.total, uint64_t{25033848} * 1024);
  EXPECT_EQ(memory.available, uint64_t{20000000} * 1024);
}

TEST(HostMemoryTest, WhatIsMissingIsNotKnown) {
  EXPECT_EQ(parseMemInfo("").total, 0u);
  EXPECT_EQ(parseMemInfo("MemTotal: much\n").total, 0u);
}

TEST(HostMemoryTest, ThisHostHasSome) {
  const HostMemory memory = hostMemory();
  EXPECT_GT(memory.total, uint64_t{1} << 26);
  EXPECT_LE(memory.available, memory.total);
}

}  // namespace dtf::train
