#include "common/data/growing_block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace dtf::data {
namespace {

// Returns a block of `bytes`, appended in pieces of `piece`.
ByteBlock collected(const std::string& bytes, size_t piece, size_t resident_max) {
  GrowingBlock growing(resident_max);
  for (size_t at = 0; at < bytes.size(); at += piece)
    growing.append(bytes.data() + at, std::min(piece, bytes.size() - at));
  EXPECT_EQ(growing.size(), bytes.size());
  ByteBlock block = growing.finish();
  EXPECT_EQ(growing.size(), 0u);
  return block;
}

TEST(GrowingBlock, HoldsWhatWasAppendedInMemoryOrInAFile) {
  std::string bytes;
  for (uint32_t i = 0; bytes.size() < 5'000'000; ++i)  // several writes
    bytes.append(reinterpret_cast<const char*>(&i), sizeof(i));
  for (const size_t resident_max : {bytes.size(), bytes.size() - 1, size_t{100}, size_t{0}}) {
    const ByteBlock block = collected(bytes, 4321, resident_max);
    EXPECT_EQ(block.onDisk(), resident_max < bytes.size());
    ASSERT_EQ(block.size(), bytes.size());
    EXPECT_EQ(std::memcmp(block.data(), bytes.data(), bytes.size()), 0) << resident_max;
  }
}

TEST(GrowingBlock, OfNothingIsNothing) {
  EXPECT_EQ(GrowingBlock().finish().size(), 0u);
}

}  // namespace
}  // namespace dtf::data
