#include "common/base/huge_pages.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "common/base/file.h"

namespace dtf {
namespace {

// Returns the kernel's flags of the mapping at `memory`: "rd wr ... hg"; empty if it has none.
std::string mappingFlags(const void* memory) {
  std::ifstream maps("/proc/self/smaps");
  const auto at = reinterpret_cast<uintptr_t>(memory);
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) inside = begin <= at && at < end;
    if (inside && line.starts_with("VmFlags:")) return line.substr(8) + " ";
  }
  return "";
}

TEST(HugePages, AreAskedForWhereOneFits) {
  EXPECT_EQ(hugePageAlignment(kHugePageBytes - 1, 64), 64u);
  EXPECT_EQ(hugePageAlignment(kHugePageBytes, 64), kHugePageBytes);
  const std::unique_ptr<void, decltype(&std::free)> memory(
      std::aligned_alloc(kHugePageBytes, 32 * kHugePageBytes), &std::free);
  preferHugePages(memory.get(), 32 * kHugePageBytes);
  const std::string flags = mappingFlags(memory.get());
  if (flags.empty() || !std::filesystem::exists("/sys/kernel/mm/transparent_hugepage"))
    GTEST_SKIP() << "this kernel doesn't say what was asked for";
  EXPECT_NE(flags.find(" hg "), std::string::npos) << flags;
}

TEST(HugePages, AreNotAskedForWhereNoneFits) {
  const std::unique_ptr<void, decltype(&std::free)> memory(
      std::aligned_alloc(kHugePageBytes, 2 * kHugePageBytes), &std::free);
  preferHugePages(memory.get(), kHugePageBytes - 1);
  EXPECT_EQ(mappingFlags(memory.get()).find(" hg "), std::string::npos);
}

}  // namespace
}  // namespace dtf
