#include "common/base/host_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace dtf {

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

// systemd limits a unit through its group. A container may see the groups around its own.
TEST(HostMemoryTest, TheTightestGroupAroundTheProcessCounts) {
  namespace fs = std::filesystem;
  const fs::path root =
      fs::temp_directory_path() / ("dtf-host-memory-" + std::to_string(::getpid()));
  fs::create_directories(root / "a" / "b" / "c");
  const auto limit = [&](const fs::path& group, const char* text) {
    std::ofstream(root / group / "memory.max") << text;
  };
  const char* self = "12:cpu:/elsewhere\n0::/a/b/c\n";
  EXPECT_EQ(cgroupLimit(self, root), 0u);
  limit("a/b/c", "max\n");
  limit("a", "4096\n");
  EXPECT_EQ(cgroupLimit(self, root), 4096u);
  limit("a/b", "2048\n");
  EXPECT_EQ(cgroupLimit(self, root), 2048u);
  limit("", "1024\n");
  EXPECT_EQ(cgroupLimit(self, root), 1024u);
  EXPECT_EQ(cgroupLimit("0::/\n", root), 1024u) << "a container sees its own group as the root";
  EXPECT_EQ(cgroupLimit("", root), 1024u);
  EXPECT_EQ(cgroupLimit("0::/../of-another-container\n", root / "a"), 1024u);
  fs::remove_all(root);
}

}  // namespace dtf
