#include "common/data/png_encoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "common/data/image_decoder.h"

namespace dtf::data {
namespace {

std::vector<uint8_t> ramp(int64_t count) {
  std::vector<uint8_t> pixels;
  for (int64_t i = 0; i < count; ++i) pixels.push_back(static_cast<uint8_t>(i * 37));
  return pixels;
}

TEST(PngEncoder, WhatItWritesIsReadBack) {
  for (const int64_t channels : {1, 3}) {
    const std::vector<uint8_t> pixels = ramp(5 * 7 * channels);
    const std::string png = encodePng(5, 7, channels, pixels);
    const Image read = decodeImage({reinterpret_cast<const uint8_t*>(png.data()), png.size()},
                                   "the image", channels);
    EXPECT_EQ(read.height, 5);
    EXPECT_EQ(read.width, 7);
    ASSERT_EQ(read.pixels.size(), pixels.size());
    EXPECT_TRUE(std::equal(pixels.begin(), pixels.end(), read.pixels.data())) << channels;
  }
}

// dtf's own decoder drops that channel.
TEST(PngEncoder, AFourthChannelIsKept) {
  const std::string png = encodePng(1, 2, 4, ramp(8));
  constexpr size_t kColourType = 8 + 8 + 9;  // the signature, the chunk's head, earlier fields
  EXPECT_EQ(png.at(kColourType), 6) << "RGB with alpha";
}

TEST(PngEncoderDeathTest, PixelsAreAsManyAsItSays) {
  EXPECT_DEATH(encodePng(2, 2, 1, ramp(5)), "pixels.size");
  EXPECT_DEATH(encodePng(2, 2, 2, ramp(8)), "channels");
}

}  // namespace
}  // namespace dtf::data
