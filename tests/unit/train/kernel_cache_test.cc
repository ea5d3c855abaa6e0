#include "common/train/kernel_cache.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "common/base/file.h"
#include "tests/support/temporary_files.h"

namespace dtf::train {
namespace {

class KernelCacheTest : public ::testing::Test {
 protected:
  std::string text() const { return readFile(file_, KernelCache::kBytesMax); }

  testing::TemporaryFiles files_;
  const std::filesystem::path file_ = "cache/dtf/kernels.json";
  KernelCache cache_{file_};
};

TEST_F(KernelCacheTest, WhatIsKeptIsFoundByOtherProcesses) {
  EXPECT_EQ(cache_.find("a", "3x3"), std::nullopt);
  cache_.keep("a", "3x3", "winograd");
  cache_.keep("a", "5x5", "framed");
  cache_.keep("b", "3x3", "gathered");
  const KernelCache other(file_);
  EXPECT_EQ(other.find("a", "3x3"), "winograd");
  EXPECT_EQ(other.find("a", "5x5"), "framed");
  EXPECT_EQ(other.find("b", "3x3"), "gathered") << "another machine";
  EXPECT_EQ(other.find("b", "5x5"), std::nullopt);
  cache_.keep("b", "3x3", "framed");
  EXPECT_EQ(other.find("b", "3x3"), "framed");
}

TEST_F(KernelCacheTest, ADamagedFileIsIgnoredAndReplaced) {
  cache_.keep("a", "3x3", "winograd");
  const std::string whole = text();
  std::string changed = whole;
  changed.replace(changed.find("winograd"), 8, "gathered");
  const std::string none[] = {"",   "{",     whole.substr(0, whole.size() / 2),
                              "[]", changed, R"({"schema": 1, "checksum": 1, "machines": {}})"};
  for (const std::string& damaged : none) {
    files_.write(file_, damaged);
    EXPECT_EQ(cache_.find("a", "3x3"), std::nullopt) << damaged;
    cache_.keep("a", "3x3", "winograd");
    EXPECT_EQ(text(), whole);
  }
  files_.write(file_, std::string(KernelCache::kBytesMax + 1, ' '));
  EXPECT_EQ(cache_.find("a", "3x3"), std::nullopt) << "larger than any that was written";
}

TEST_F(KernelCacheTest, OtherMachinesGoFirstWhenItIsFull) {
  const std::string large(KernelCache::kBytesMax / 2, 'x');
  cache_.keep("a", large, "framed");
  cache_.keep("b", "3x3", "framed");
  EXPECT_EQ(cache_.find("a", large), "framed");
  cache_.keep("b", large, "framed");
  EXPECT_EQ(cache_.find("a", large), std::nullopt);
  EXPECT_EQ(cache_.find("b", "3x3"), "framed");
  EXPECT_EQ(cache_.find("b", large), "framed");
  cache_.keep("b", large + "y", "framed");
  EXPECT_EQ(cache_.find("b", "3x3"), std::nullopt) << "of one machine all go";
  EXPECT_EQ(cache_.find("b", large + "y"), "framed");
}

TEST_F(KernelCacheTest, AFileThatCantBeWrittenCostsNothing) {
  files_.write("file", "");
  KernelCache below("file/kernels.json");
  below.keep("a", "3x3", "winograd");
  EXPECT_EQ(below.find("a", "3x3"), std::nullopt);
  KernelCache none;
  none.keep("a", "3x3", "winograd");
  EXPECT_EQ(none.find("a", "3x3"), std::nullopt);
}

TEST_F(KernelCacheTest, ItLiesInTheUsersCacheFolder) {
  const auto with = [](const char* cache, const char* home) {
    ::setenv("XDG_CACHE_HOME", cache, 1);
    ::setenv("HOME", home, 1);
    return KernelCache::defaultFile();
  };
  const std::string home = std::getenv("HOME") == nullptr ? "/" : std::getenv("HOME");
  EXPECT_EQ(with("/c", "/h"), "/c/dtf/kernels.json");
  EXPECT_EQ(with("", "/h"), "/h/.cache/dtf/kernels.json");
  EXPECT_EQ(with("relative", "/h"), "/h/.cache/dtf/kernels.json");
  EXPECT_EQ(with("", ""), "");
  ::unsetenv("XDG_CACHE_HOME");
  ::setenv("HOME", home.c_str(), 1);
}

}  // namespace
}  // namespace dtf::train
