// Each kind of PNG and JPEG becomes grey or colours; what is damaged, cut off or too large is said. How
// the figures come about: Pillow 13 gives the same where it is named.

#include "common/data/image_decoder.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "common/base/error.h"
#include "tests/unit/data/image_files.h"

namespace dtf::data {
namespace {

std::span<const uint8_t> bytesOf(const std::string& file) {
  return {reinterpret_cast<const uint8_t*>(file.data()), file.size()};
}

std::vector<uint8_t> pixelsOf(const std::string& file, int64_t channels) {
  const Image image = decodeImage(bytesOf(file), "a.png", channels);
  EXPECT_EQ(image.channels, channels);
  EXPECT_EQ(image.pixels.size(), static_cast<size_t>(image.height * image.width * channels));
  return {image.pixels.data(), image.pixels.data() + image.pixels.size()};
}

std::string imageFailureOf(const std::string& file, int64_t pixels_max = kImagePixelsMax) {
  try {
    decodeImage(bytesOf(file), "a.png", 3, pixels_max);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    return error.message();
  }
  return "no error";
}

using Bytes = std::vector<uint8_t>;

TEST(ImageDecoder, AColourPngIsAsItIs) {
  const Bytes pixels = noise(7 * 5 * 3);
  EXPECT_EQ(pixelsOf(pngOf(7, 5, pixels), 3), pixels);
  PngKind interlaced;
  interlaced.interlaced = true;
  EXPECT_EQ(pixelsOf(pngOf(7, 5, pixels, interlaced), 3), pixels);
  const Image image = decodeImage(bytesOf(pngOf(7, 5, pixels)), "a.png", 3);
  EXPECT_EQ(image.width, 7);
  EXPECT_EQ(image.height, 5);
}

// As Pillow's convert("L").
TEST(ImageDecoder, ColoursBecomeGreyByTheirBrightness) {
  const Bytes grey = {148, 105, 224, 210, 79,  63,  155, 51,  106, 142, 97, 51,
                      159, 109, 59,  122, 80,  191, 93,  173, 68,  163, 83, 205,
                      214, 176, 107, 171, 173, 105, 160, 138, 94,  118, 117};
  EXPECT_EQ(pixelsOf(pngOf(7, 5, noise(7 * 5 * 3)), 1), grey);
}

TEST(ImageDecoder, GreyOfAnyDepthBecomesEightBits) {
  EXPECT_EQ(pixelsOf(pngOf(2, 1, {7, 200}, {PNG_COLOR_TYPE_GRAY}), 3),
            (Bytes{7, 7, 7, 200, 200, 200}));
  EXPECT_EQ(pixelsOf(pngOf(4, 1, {0b01010000}, {PNG_COLOR_TYPE_GRAY, 1}), 1),
            (Bytes{0, 255, 0, 255}));
  EXPECT_EQ(pixelsOf(pngOf(2, 1, {0x12, 0xf0, 0xff, 0xff}, {PNG_COLOR_TYPE_GRAY, 16}), 1),
            (Bytes{0x13, 0xff}))
      << "the nearest, not the upper byte";
}

TEST(ImageDecoder, APaletteIsLookedUpAndTransparencyIsDropped) {
  const PngKind palette{PNG_COLOR_TYPE_PALETTE, 8, false, {{1, 2, 3}, {250, 240, 230}}};
  EXPECT_EQ(pixelsOf(pngOf(2, 1, {1, 0}, palette), 3), (Bytes{250, 240, 230, 1, 2, 3}));
  EXPECT_EQ(pixelsOf(pngOf(2, 1, {9, 8, 7, 0, 6, 5, 4, 128}, {PNG_COLOR_TYPE_RGBA}), 3),
            (Bytes{9, 8, 7, 6, 5, 4}));
  EXPECT_EQ(pixelsOf(pngOf(2, 1, {9, 0, 8, 255}, {PNG_COLOR_TYPE_GRAY_ALPHA}), 1), (Bytes{9, 8}));
}

// Of one colour, of which the coding loses nearly nothing.
TEST(ImageDecoder, AJpegIsGreyColouredOrOfInks) {
  const auto near = [](const Bytes& pixels, const Bytes& colour) {
    for (size_t i = 0; i < pixels.size(); ++i)
      ASSERT_NEAR(pixels[i], colour[i % colour.size()], 2) << i;
  };
  for (const bool progressive : {false, true}) {
    near(pixelsOf(jpegOf(20, 10, 3, plain(200, {200, 100, 50}), progressive), 3), {200, 100, 50});
    near(pixelsOf(jpegOf(20, 10, 1, plain(200, {77}), progressive), 3), {77, 77, 77});
    near(pixelsOf(jpegOf(20, 10, 1, plain(200, {77}), progressive), 1), {77});
  }
  // Full inks are 0; a quarter of black leaves three quarters of the light.
  near(pixelsOf(jpegOf(20, 10, 4, plain(200, {255, 128, 0, 191})), 3), {191, 96, 0});
}

TEST(ImageDecoder, WhatIsNoImageIsNamedByWhatItLooksLike) {
  EXPECT_EQ(imageFailureOf("GIF89a......"),
            "a.png: this looks like a GIF image; expected a PNG or JPEG image");
  EXPECT_EQ(imageFailureOf(""), "a.png: the file is empty");
  EXPECT_EQ(imageFailureOf("<html>"),
            "a.png: this looks like a web page or XML, '<html>'; expected a "
            "PNG or JPEG image");
}

// At every place where it can be cut, and with each of its bytes changed: an error or an image, never more.
TEST(ImageDecoder, AFileThatIsCutOffIsRefusedWhereverItIs) {
  const PngKind interlaced{PNG_COLOR_TYPE_RGB, 8, true};
  for (const std::string& file :
       {pngOf(7, 5, noise(7 * 5 * 3)), pngOf(7, 5, noise(7 * 5 * 3), interlaced),
        jpegOf(17, 9, 3, noise(17 * 9 * 3)), jpegOf(17, 9, 3, noise(17 * 9 * 3), true)}) {
    const bool png = file[1] == 'P';
    // What ends a file after its last pixels is not missed.
    for (size_t bytes = 0; bytes + (png ? 24 : 16) < file.size(); ++bytes)
      EXPECT_NE(imageFailureOf(file.substr(0, bytes)), "no error")
          << bytes << " of " << file.size();
    for (size_t at = 0; at < file.size(); ++at) {
      std::string changed = file;
      changed[at] = static_cast<char>(changed[at] ^ 0x55);
      imageFailureOf(changed, 1 << 20);
    }
  }
  const std::string jpeg = jpegOf(17, 9, 3, noise(17 * 9 * 3));
  EXPECT_EQ(imageFailureOf(jpeg.substr(0, jpeg.size() / 2)),
            "a.png: damaged JPEG image: Premature end of input file");
  const std::string png = pngOf(7, 5, noise(7 * 5 * 3));
  EXPECT_EQ(imageFailureOf(png.substr(0, png.size() / 2)),
            "a.png: damaged PNG image: the file is cut off");
}

// The sizes of the header, which nothing is allocated for.
TEST(ImageDecoder, ASizeThatTheFileCannotHoldIsRefused) {
  std::string jpeg = jpegOf(16, 16, 1, plain(256, {9}));
  const size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\x70\x00\x70\x00", 4);  // height and width
  EXPECT_NE(imageFailureOf(jpeg).find("a.png: too large: the header promises 28672 x 28672 pixels"),
            std::string::npos)
      << imageFailureOf(jpeg);
  jpeg.replace(frame + 5, 4, "\x10\x00\x10\x00", 4);
  EXPECT_NE(
      imageFailureOf(jpeg).find("a.png: cut off: the header promises 4096 x 4096 pixels, but a "
                                "file of this size can't hold more than "),
      std::string::npos)
      << imageFailureOf(jpeg);
  const std::string png = pngOf(600, 600, plain(600 * 600, {5}), {PNG_COLOR_TYPE_GRAY});
  EXPECT_EQ(imageFailureOf(png), "no error");
  EXPECT_EQ(imageFailureOf(png, 1000),
            "a.png: too large: the header promises 600 x 600 pixels, at most 32768 on a side and "
            "1000 in all are read");
}

// Each scan costs a pass over the image.
TEST(ImageDecoder, AJpegOfVeryManyScansIsRefused) {
  const std::string file = jpegOf(16, 16, 1, plain(256, {9}), true);
  const size_t first = file.find("\xff\xda");
  const size_t last = file.rfind("\xff\xda");
  ASSERT_LT(first, last);
  std::string many = file.substr(0, file.size() - 2);
  for (int i = 0; i < 200; ++i) many += file.substr(last, file.size() - 2 - last);
  EXPECT_EQ(imageFailureOf(many + "\xff\xd9"),
            "a.png: damaged JPEG image: it has too many scans (101)");
}

// The header of a JPEG says how it is coded: SOF9 is arithmetic coding, of which a few hundred bytes fill any image.
TEST(ImageDecoder, AnArithmeticallyCodedJpegIsRefused) {
  std::string file = jpegOf(16, 16, 1, plain(256, {9}));
  const size_t header = file.find("\xff\xc0");
  ASSERT_NE(header, std::string::npos);
  file[header + 1] = '\xc9';
  EXPECT_EQ(imageFailureOf(file).find("a.png: a JPEG image that is coded arithmetically"), 0U)
      << imageFailureOf(file);
}

}  // namespace
}  // namespace dtf::data
