// Each kind of PNG becomes grey or coloured. Some figures are from Pillow 13, as marked.

#include <gtest/gtest.h>

#include "tests/unit/data/decoded.h"
#include "tests/unit/data/image_files.h"

namespace dtf::data {
namespace {

TEST(PngDecoder, AColourPngIsAsItIs) {
  const Bytes pixels = noise(7 * 5 * 3);
  EXPECT_EQ(pixelsOf(pngOf(7, 5, pixels), 3), pixels);
  PngKind interlaced;
  interlaced.interlaced = true;
  EXPECT_EQ(pixelsOf(pngOf(7, 5, pixels, interlaced), 3), pixels);
  const Image image = decodeImage(bytesOf(pngOf(7, 5, pixels)), "a.png", 3);
  EXPECT_EQ(image.width, 7);
  EXPECT_EQ(image.height, 5);
}

// The figures of Pillow's convert("L").
TEST(PngDecoder, ColoursBecomeGreyByTheirBrightness) {
  const Bytes grey = {148, 105, 224, 210, 79,  63,  155, 51,  106, 142, 97, 51,
                      159, 109, 59,  122, 80,  191, 93,  173, 68,  163, 83, 205,
                      214, 176, 107, 171, 173, 105, 160, 138, 94,  118, 117};
  EXPECT_EQ(pixelsOf(pngOf(7, 5, noise(7 * 5 * 3)), 1), grey);
}

TEST(PngDecoder, GreyOfAnyDepthBecomesEightBits) {
  EXPECT_EQ(pixelsOf(pngOf(2, 1, {7, 200}, {PNG_COLOR_TYPE_GRAY}), 3),
            (Bytes{7, 7, 7, 200, 200, 200}));
  EXPECT_EQ(pixelsOf(pngOf(4, 1, {0b01010000}, {PNG_COLOR_TYPE_GRAY, 1}), 1),
            (Bytes{0, 255, 0, 255}));
  EXPECT_EQ(pixelsOf(pngOf(2, 1, {0x12, 0xf0, 0xff, 0xff}, {PNG_COLOR_TYPE_GRAY, 16}), 1),
            (Bytes{0x13, 0xff}))
      << "the nearest, not the upper byte";
}

TEST(PngDecoder, APaletteIsLookedUpAndTransparencyIsDropped) {
  const PngKind palette{PNG_COLOR_TYPE_PALETTE, 8, false, {{1, 2, 3}, {250, 240, 230}}};
  EXPECT_EQ(pixelsOf(pngOf(2, 1, {1, 0}, palette), 3), (Bytes{250, 240, 230, 1, 2, 3}));
  EXPECT_EQ(pixelsOf(pngOf(2, 1, {9, 8, 7, 0, 6, 5, 4, 128}, {PNG_COLOR_TYPE_RGBA}), 3),
            (Bytes{9, 8, 7, 6, 5, 4}));
  EXPECT_EQ(pixelsOf(pngOf(2, 1, {9, 0, 8, 255}, {PNG_COLOR_TYPE_GRAY_ALPHA}), 1), (Bytes{9, 8}));
}

}  // namespace
}  // namespace dtf::data
