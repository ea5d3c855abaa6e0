#include "common/data/file_kind.h"

#include <gtest/gtest.h>

#include <string_view>

namespace dtf::data {

namespace {

std::string kindOf(std::string_view bytes) {
  return fileKind({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

}  // namespace

TEST(FileKind, WhatPeopleGiveInPlaceOfADataSetIsNamed) {
  using namespace std::string_view_literals;
  EXPECT_EQ(kindOf("\x89PNG\r\n\x1a\n"), "a PNG image");
  EXPECT_EQ(kindOf("PK\x03\x04 and more"), "a zip archive (.npz is one, too)");
  EXPECT_EQ(kindOf("\x93NUMPY\x01\x00"sv), "a NumPy array (.npy)");
  EXPECT_EQ(kindOf("\x28\xb5\x2f\xfd"), "a file packed by zstd");
  EXPECT_EQ(kindOf("<!DOCTYPE html>\n<html>"), "a web page or XML, '<!DOCTYPE html>'");
  EXPECT_EQ(kindOf("label,pixel0\n7,0\n"), "text such as CSV, 'label,pixel0'");
  EXPECT_EQ(kindOf("a\r\nb"), "text such as CSV, 'a'") << "lines of Windows";
}

TEST(FileKind, AnIdxFileOfAnotherKindSaysOfWhich) {
  using namespace std::string_view_literals;
  EXPECT_EQ(kindOf("\x00\x00\x08\x01"sv),
            "an IDX file of unsigned bytes with 1 dimension, as labels have");
  EXPECT_EQ(kindOf("\x00\x00\x0d\x03"sv), "an IDX file of 32-bit floats with 3 dimensions");
  EXPECT_EQ(kindOf("\x00\x00\x0a\x03"sv), "data of an unknown kind, 00 00 0a 03") << "no such type";
  EXPECT_EQ(kindOf("\x00\x00\x08"sv), "data of an unknown kind, 00 00 08") << "cut";
}

// A terminal reads what a message repeats.
TEST(FileKind, BytesThatATerminalWouldObeyAreNotRepeated) {
  EXPECT_EQ(kindOf("\x1b[2Jlabel,pixel"), "data of an unknown kind, 1b 5b 32 4a 6c 61 62 65");
  EXPECT_EQ(kindOf("a\x7f"), "data of an unknown kind, 61 7f");
}

TEST(FileKindDeathTest, NoBytesAreTheCallersMistake) {
  EXPECT_DEATH(kindOf(""), "first");
}

}  // namespace dtf::data
