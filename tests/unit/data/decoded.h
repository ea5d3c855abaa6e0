#pragma once

// Images decoded from the bytes of a file, or the decoder's error.

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/data/image_decoder.h"

namespace dtf::data {

inline std::span<const uint8_t> bytesOf(const std::string& file) {
  return {reinterpret_cast<const uint8_t*>(file.data()), file.size()};
}

inline std::vector<uint8_t> pixelsOf(const std::string& file, int64_t channels) {
  const Image image = decodeImage(bytesOf(file), "a.png", channels);
  EXPECT_EQ(image.channels, channels);
  EXPECT_EQ(image.pixels.size(), static_cast<size_t>(image.height * image.width * channels));
  return {image.pixels.data(), image.pixels.data() + image.pixels.size()};
}

inline std::string imageFailureOf(const std::string& file, int64_t pixels_max = kImagePixelsMax) {
  try {
    decodeImage(bytesOf(file), "a.png", 3, pixels_max);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    return error.message();
  }
  return "no error";
}

using Bytes = std::vector<uint8_t>;

}  // namespace dtf::data
