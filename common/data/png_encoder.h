#pragma once

// Encodes pixels as PNG, for programs that show images.

#include <cstdint>
#include <span>
#include <string>

namespace dtf::data {

// `pixels`: height * width * channels bytes, row by row; 1 channel is grey, 3 are red, green and
// blue, a fourth is the opacity. Height and width from 1.
std::string encodePng(int64_t height, int64_t width, int64_t channels,
                      std::span<const uint8_t> pixels);

}  // namespace dtf::data
