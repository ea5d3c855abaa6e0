#include "common/data/byte_source.h"

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "tests/unit/data/idx_files.h"

namespace dtf::data {
namespace {

// Larger than the source's own buffer, and not repetitive.
std::string manyBytes() {
  std::string bytes(1'000'000, '\0');
  uint32_t state = 1;
  for (char& byte : bytes) byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

TEST(ByteSource, BringsTheSameBytesInPiecesOfAnySize) {
  const TemporaryFolder folder;
  const std::string bytes = manyBytes();
  for (const auto& path : {folder.write("plain", bytes), folder.write("packed", gzipped(bytes))}) {
    ByteSource source(path);
    std::string got;
    for (size_t piece = 1;; piece = piece * 3 + 1) {
      std::string part(piece, '\0');
      part.resize(source.read(reinterpret_cast<uint8_t*>(part.data()), part.size()));
      got += part;
      if (part.size() < piece) break;
    }
    EXPECT_TRUE(got == bytes) << path;
  }
}

TEST(ByteSource, BoundsWhatTheFileCanHold) {
  const TemporaryFolder folder;
  const ByteSource plain(folder.write("plain", "abc"));
  EXPECT_FALSE(plain.packed());
  EXPECT_EQ(plain.bytesMax(), 3u);
  const std::string zeros(1 << 22, '\0');
  const ByteSource packed(folder.write("packed", gzipped(zeros)));
  EXPECT_TRUE(packed.packed());
  EXPECT_GE(packed.bytesMax(), zeros.size());  // deflate's best case
  EXPECT_LT(packed.bytesMax(), 2 * zeros.size());
}

std::string bytesOf(const std::filesystem::path& path) {
  ByteSource source(path);
  std::string bytes(1 << 20, '\0');
  bytes.resize(source.read(reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()));
  return bytes;
}

// gzip reads such files: several members, and zero bytes behind each.
TEST(ByteSource, MembersAndTheirPaddingAreOneStream) {
  const TemporaryFolder folder;
  const std::string zeros(700'000, '\0');  // more than the source's own buffer
  EXPECT_EQ(bytesOf(folder.write("a", gzipped("ab") + gzipped("cd"))), "abcd");
  EXPECT_EQ(bytesOf(folder.write("b", gzipped("ab") + zeros)), "ab");
  EXPECT_EQ(bytesOf(folder.write("c", gzipped("ab") + zeros + gzipped("cd") + '\0')), "abcd");
  EXPECT_EQ(bytesOf(folder.write("d", gzipped("") + gzipped("") + gzipped("cd"))), "cd");
  for (const std::string& tail : {std::string("x"), zeros + "x", zeros + "\x1f\x8b"})
    EXPECT_THROW(bytesOf(folder.write("e", gzipped("ab") + tail)), Error);
}

}  // namespace
}  // namespace dtf::data
