#include "common/base/checksum.h"

#include <gtest/gtest.h>

#include "common/base/error.h"

namespace dtf {
namespace {

// `xxhsum -H3` prints these values.
TEST(Checksum, IsXxh3WithSeedZero) {
  EXPECT_EQ(hexOf(checksumOf("")), "2d06800538d394c2");
  EXPECT_EQ(checksumOf("dtf"), checksumOf(std::string("dtf")));
}

TEST(Checksum, InPiecesIsTheSameAsAtOnce) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 31);
  Checksum pieces;
  for (size_t at = 0; at < text.size(); at += 37)
    pieces.update(text.data() + at, std::min<size_t>(37, text.size() - at));
  EXPECT_EQ(pieces.value(), checksumOf(text));
  pieces.reset();
  EXPECT_EQ(pieces.value(), checksumOf(""));
}

TEST(Checksum, HexIsReadBackAndNothingElseIs) {
  for (const uint64_t value :
       {uint64_t{0}, uint64_t{1}, ~uint64_t{0}, uint64_t{0x0123456789abcdef}})
    EXPECT_EQ(fromHex(hexOf(value)), value);
  for (const char* bad : {"", "0", "0123456789abcde", "0123456789abcdef0", "0123456789ABCDEF",
                          "0123456789abcdeg", " 123456789abcdef"})
    EXPECT_THROW(fromHex(bad), Error) << bad;
}

}  // namespace
}  // namespace dtf
