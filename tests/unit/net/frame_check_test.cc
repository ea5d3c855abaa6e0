#include "common/net/frame_check.h"

#include <gtest/gtest.h>

#include <vector>

namespace dtf::net {
namespace {

std::vector<uint32_t> checkedTable(uint32_t words) {
  std::vector<uint32_t> table = {1, words, 1, 0};
  table[3] = tableCheck(reinterpret_cast<const std::byte*>(table.data()), 2);
  return table;
}

bool isChecked(const std::vector<uint32_t>& table, uint32_t segments) {
  return isCheckedTable(reinterpret_cast<const std::byte*>(table.data()), segments);
}

TEST(FrameCheck, AMessageOfOneSegmentHasTwo) {
  EXPECT_EQ(checkedCount(1), 2u);
  EXPECT_EQ(checkedCount(2), 8u);
}

TEST(FrameCheck, NoMessageHasMoreSegmentsBesideItsOwnThanTheLimit) {
  for (uint32_t segments = 1; segments <= 512; ++segments) {
    EXPECT_GT(checkedCount(segments), segments);
    EXPECT_LE(checkedCount(segments), segments + kCheckSegmentsMax);
    EXPECT_EQ(checkedCount(segments) % 2, 0u) << "the table has a padding word";
  }
}

TEST(FrameCheck, ATurnedBitMakesNoOtherCheckedCount) {
  for (uint32_t segments = 1; segments <= 512; ++segments)
    for (uint32_t bit = 0; bit < 32; ++bit) {
      const uint32_t turned = (checkedCount(segments) - 1) ^ (uint32_t{1} << bit);
      EXPECT_FALSE(isCheckedCount(uint64_t{turned} + 1)) << segments << " bit " << bit;
    }
}

TEST(FrameCheck, ATableIsCheckedAsItWasSentAlone) {
  const std::vector<uint32_t> table = checkedTable(24);
  EXPECT_TRUE(isChecked(table, 2));
  for (size_t bit = 32; bit < 128; ++bit) {
    std::vector<uint32_t> turned = table;
    turned[bit / 32] ^= uint32_t{1} << bit % 32;
    EXPECT_FALSE(isChecked(turned, 2)) << "bit " << bit;
    EXPECT_TRUE(isTurnedTable(reinterpret_cast<const std::byte*>(turned.data()), 2, 0));
  }
  EXPECT_FALSE(isChecked({1, 24, 1, 0}, 2)) << "as a version without checksums sends it";
  EXPECT_FALSE(isChecked({0, 24}, 1));
}

// First frames of versions without checksums, and checked frames with a damaged count.
TEST(FrameCheck, AFirstFrameThatLostItsCountIsToldFromAnUncheckedOne) {
  const std::vector<uint32_t> table = checkedTable(24);
  const auto bytes = [](const std::vector<uint32_t>& words) {
    return reinterpret_cast<const std::byte*>(words.data());
  };
  constexpr uint64_t kStruct = uint64_t{0x00010001} << 32;
  EXPECT_FALSE(isTurnedTable(bytes({0, 24}), 1, kStruct));
  EXPECT_FALSE(isTurnedTable(bytes({0, 0}), 1, 0));
  EXPECT_FALSE(isTurnedTable(bytes({1, 24, 2, 0}), 2, kStruct));
  EXPECT_TRUE(isTurnedTable(bytes({0, 24}), 1, load64(bytes(table) + 8)));
  EXPECT_FALSE(isTurnedCount(1));
  EXPECT_FALSE(isTurnedCount(2));
  for (uint32_t bit = 1; bit < 32; ++bit) EXPECT_TRUE(isTurnedCount((1 ^ uint64_t{1} << bit) + 1));
  EXPECT_FALSE(isTurnedCount(uint64_t{0x20544547} + 1)) << "an HTTP request";
}

TEST(FrameCheck, TheTextsSayWhatToDo) {
  const std::string text = damagedMessageText(4194304, 0x1234, 0xabcd);
  EXPECT_EQ(text,
            "a message of 4194304 bytes was damaged on the way (checksum "
            "0000000000001234, sent with 000000000000abcd); check the network cards, the cables "
            "and the memory of both hosts");
  EXPECT_NE(damagedHeaderText().find("the header of a message"), std::string::npos);
}

}  // namespace
}  // namespace dtf::net
