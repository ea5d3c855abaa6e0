// Each kind of uncompressed BMP becomes grey or coloured; the others are rejected.

#include <gtest/gtest.h>

#include <string_view>

#include "tests/unit/data/bmp_files.h"
#include "tests/unit/data/decoded.h"

namespace dtf::data {
namespace {

using std::string_literals::operator""s;

// Two rows of two pixels, blue before red, padded to eight bytes.
const std::string kRows = "\x03\x02\x01\x06\x05\x04\0\0\x09\x08\x07\x0c\x0b\x0a\0\0"s;

TEST(BmpDecoder, TheFirstRowIsTheLowestOneOrTheTopOne) {
  EXPECT_EQ(pixelsOf(bmpOf(2, 2, kRows), 3), (Bytes{7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(pixelsOf(bmpOf(2, -2, kRows), 3), (Bytes{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  // The padding of the last row, which some programs leave out.
  EXPECT_EQ(pixelsOf(bmpOf(2, 2, kRows.substr(0, 14)), 3).size(), 12u);
  EXPECT_EQ(pixelsOf(bmpOf(2, 2, kRows, {.head_bytes = 12}), 3)[0], 7);
  EXPECT_EQ(pixelsOf(bmpOf(2, 2, kRows, {.head_bytes = 124}), 3)[0], 7);
}

TEST(BmpDecoder, FourBytesAPixelHaveColoursInTheStatedOrder) {
  const std::string pixel = "\x01\x02\x03\x04"s;
  EXPECT_EQ(pixelsOf(bmpOf(1, 1, pixel, {.bits = 32}), 3), (Bytes{3, 2, 1}));
  const std::string masks = "\xff\0\0\0\0\xff\0\0\0\0\xff\0"s;  // red first
  EXPECT_EQ(pixelsOf(bmpOf(1, 1, pixel, {.bits = 32, .compression = 3, .behind = masks}), 3),
            (Bytes{1, 2, 3}));
  const std::string odd = "\0\x3f\0\0\0\0\xff\0\xff\0\0\0"s;
  EXPECT_EQ(imageFailureOf(bmpOf(1, 1, pixel, {.bits = 32, .compression = 3, .behind = odd})),
            "a.png: a BMP image of colours that aren't bytes (mask 00003f00): save it with 24 bits "
            "a pixel, or as PNG");
}

TEST(BmpDecoder, ColoursOfAPaletteAreLookedUp) {
  const std::string palette = "\x03\x02\x01\0\x06\x05\x04\0"s;
  EXPECT_EQ(pixelsOf(bmpOf(3, 1, "\0\1\1\0"s, {.bits = 8, .colours = 2, .behind = palette}), 3),
            (Bytes{1, 2, 3, 4, 5, 6, 4, 5, 6}));
  EXPECT_EQ(pixelsOf(bmpOf(3, 1, "\x01\x10\0\0"s, {.bits = 4, .colours = 2, .behind = palette}), 3),
            (Bytes{1, 2, 3, 4, 5, 6, 4, 5, 6}));
  EXPECT_EQ(pixelsOf(bmpOf(3, 1, "\x60\0\0\0"s, {.bits = 1, .behind = palette}), 3),
            (Bytes{1, 2, 3, 4, 5, 6, 4, 5, 6}));
  EXPECT_EQ(pixelsOf(bmpOf(1, 1, "\x80\0\0\0"s,
                           {.bits = 1, .head_bytes = 12, .behind = "\x03\x02\x01\x06\x05\x04"s}),
                     3),
            (Bytes{4, 5, 6}));
  EXPECT_EQ(imageFailureOf(bmpOf(1, 1, "\2\0\0\0"s, {.bits = 8, .colours = 2, .behind = palette})),
            "a.png: damaged BMP image: a pixel has colour 2 of 2");
  EXPECT_EQ(imageFailureOf(bmpOf(1, 1, "\2\0\0\0"s, {.bits = 8, .colours = 257})),
            "a.png: damaged BMP image: a palette of 257 colours");
}

TEST(BmpDecoder, CompressedAndOddKindsAreRefused) {
  EXPECT_EQ(imageFailureOf(bmpOf(2, 2, kRows, {.bits = 8, .compression = 1})),
            "a.png: a compressed BMP image (of kind 1 and 8 bits a pixel), which isn't read: save "
            "it uncompressed, or as PNG");
  EXPECT_EQ(imageFailureOf(bmpOf(2, 2, kRows, {.bits = 16})),
            "a.png: a BMP image of 16 bits a pixel, and 1, 4, 8, 24 and 32 are read: save it with "
            "24, or as PNG");
  EXPECT_EQ(imageFailureOf(bmpOf(2, 2, kRows, {.bits = 0})).find("a.png: a BMP image of 0 bits"),
            0u);
}

TEST(BmpDecoder, ASizeThatTheFileCannotHoldIsRefused) {
  EXPECT_EQ(imageFailureOf(bmpOf(30000, 30000, kRows)).find("a.png: too large: the header"), 0u);
  EXPECT_EQ(imageFailureOf(bmpOf(2000, 2000, kRows)).find("a.png: cut off: the header promises"),
            0u);
  EXPECT_EQ(imageFailureOf(bmpOf(2, 3, kRows)),
            "a.png: cut off: its pixels take 22 bytes from 54 on, the file has 70");
  for (const int32_t side : {0, -5, INT32_MIN}) {
    EXPECT_NE(imageFailureOf(bmpOf(side, 2, kRows)), "no error") << side;
    if (side != -5) {
      EXPECT_NE(imageFailureOf(bmpOf(2, side, kRows)), "no error") << side;
    }
  }
  const std::string file = bmpOf(2, 2, kRows);
  for (size_t bytes = 18; bytes < file.size() - 2; ++bytes)
    EXPECT_EQ(imageFailureOf(file.substr(0, bytes)).find("a.png: cut off"), 0u) << bytes;
}

// A table may begin with the same two letters.
TEST(BmpDecoder, ATableIsNoBmp) {
  EXPECT_EQ(imageKind(bytesOf(bmpOf(1, 1, "\1\2\3\0"s))), ImageKind::kBmp);
  for (const std::string& table :
       {"BM"s, "BMI,age,height\n1,2,3\n"s, "BM\n1\n2\n3\n4\n5\n6\n7\n8\n"s})
    EXPECT_EQ(imageKind(bytesOf(table)), ImageKind::kNone) << table;
}

}  // namespace
}  // namespace dtf::data
