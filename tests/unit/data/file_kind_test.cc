#include "common/data/file_kind.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace dtf::data {

namespace {

std::string kindOf(std::string_view bytes) {
  return fileKind({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

std::string knownKindOf(std::string_view bytes) {
  return knownKind({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

}  // namespace

TEST(FileKind, WhatPeopleGiveInPlaceOfADataSetIsNamed) {
  using namespace std::string_view_literals;
  EXPECT_EQ(kindOf("\x89PNG\r\n\x1a\n"), "a PNG image");
  EXPECT_EQ(kindOf("PK\x03\x04 and more"), "a zip archive (.npz is one, and .xlsx and .pt)");
  EXPECT_EQ(kindOf("\x93NUMPY\x01\x00"sv), "a NumPy array (.npy)");
  EXPECT_EQ(kindOf("\x28\xb5\x2f\xfd"), "a file packed by zstd");
  EXPECT_EQ(kindOf("RIFF\x24\x00\x00\x00WEBPVP8 "sv), "a WebP image");
  EXPECT_EQ(kindOf("\x00\x00\x00\x1c"
                   "ftypavif"sv),
            "an AVIF image");
  EXPECT_EQ(kindOf("\xff\xfe"
                   "a\x00,\x00"sv),
            "text in UTF-16 (save it as UTF-8)");
  EXPECT_EQ(kindOf("\xff\xfe\x00\x00"sv), "text in UTF-32 (save it as UTF-8)");
  EXPECT_EQ(kindOf("l\0a\0b\0e\0l\0,\0"sv), "text in UTF-16 (save it as UTF-8)");
  EXPECT_EQ(kindOf("\0l\0a\0b\0e\0l\0,"sv), "text in UTF-16 (save it as UTF-8)");
  EXPECT_EQ(kindOf("ARROW1\0\0"sv), "an Arrow file");
  EXPECT_EQ(kindOf("PAR1\x15\x04"), "a Parquet file");
  EXPECT_EQ(kindOf("\x80\x04\x95"), "a pickle of Python");
  EXPECT_EQ(kindOf("\x89HDF\r\n\x1a\n"), "an HDF5 file");
  EXPECT_EQ(kindOf("\xfd"
                   "7zXZ\0"sv),
            "a file packed by xz");
  EXPECT_EQ(kindOf("\x1f\x8b\x08"), "a file packed by gzip");
  EXPECT_EQ(kindOf("name.txt" + std::string(249, '\0') + "ustar"), "a tar archive");
  EXPECT_EQ(kindOf("<!DOCTYPE html>\n<html>"), "a web page or XML, '<!DOCTYPE html>'");
  EXPECT_EQ(kindOf("label,pixel0\n7,0\n"), "text such as CSV, 'label,pixel0'");
  EXPECT_EQ(kindOf("a\r\nb"), "text such as CSV, 'a'") << "lines of Windows";
}

// The first bytes of some formats are letters.
TEST(FileKind, ATextThatBeginsAsAMagicNumberIsAText) {
  for (const std::string line : {"BMI,age", "PAR1,PAR2", "GIF89,x", "ARROW1,y"}) {
    EXPECT_EQ(kindOf(line + "\n1,2\n"), "text such as CSV, '" + line + "'");
    EXPECT_EQ(knownKindOf(line + "\n1,2\n"), "");
  }
  EXPECT_EQ(kindOf("BM\x36\x10"), "a BMP image");
}

TEST(FileKind, WhatLeavesDoubtIsNotKnown) {
  using namespace std::string_view_literals;
  EXPECT_EQ(knownKindOf(""), "");
  EXPECT_EQ(knownKindOf("label,pixel0\n7,0\n"), "");
  EXPECT_EQ(knownKindOf("\x01\x02\x03\x00z"sv), "");
  EXPECT_EQ(knownKindOf("\x80\x04\x95"), "a pickle of Python");
  EXPECT_EQ(knownKindOf("<!DOCTYPE html>\n"), "a web page or XML, '<!DOCTYPE html>'");
}

TEST(FileKind, AnIdxFileOfAnotherKindSaysOfWhich) {
  using namespace std::string_view_literals;
  EXPECT_EQ(kindOf("\x00\x00\x08\x01"sv),
            "an IDX file of unsigned bytes with 1 dimension, as labels have");
  EXPECT_EQ(kindOf("\x00\x00\x0d\x03"sv), "an IDX file of 32-bit floats with 3 dimensions");
  EXPECT_EQ(kindOf("\x00\x00\x0a\x03"sv), "data of an unknown kind, 00 00 0a 03") << "no such type";
  EXPECT_EQ(kindOf("\x00\x00\x08"sv), "data of an unknown kind, 00 00 08") << "cut";
}

// A message may be shown in a terminal.
TEST(FileKind, BytesThatATerminalWouldObeyAreNotRepeated) {
  EXPECT_EQ(kindOf("\x1b[2Jlabel,pixel"), "data of an unknown kind, 1b 5b 32 4a 6c 61 62 65");
  EXPECT_EQ(kindOf("a\x7f"), "data of an unknown kind, 61 7f");
}

TEST(FileKindDeathTest, NoBytesAreTheCallersMistake) {
  EXPECT_DEATH(kindOf(""), "first");
}

}  // namespace dtf::data
