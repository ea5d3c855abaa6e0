#pragma once

// The two halves of decodeImage() (image_decoder.h), one for each library: in the channels that the
// file has.

#include <cstdint>
#include <span>
#include <string>

#include "common/data/image_decoder.h"

namespace dtf::data {

// Both: Errors: as decodeImage().
Image decodePng(std::span<const uint8_t> bytes, const std::string& name, int64_t pixels_max);
Image decodeJpeg(std::span<const uint8_t> bytes, const std::string& name, int64_t pixels_max);

// "NAME: why" as kBadData.
[[noreturn]] void failImage(const std::string& name, const std::string& why);

// Refuses what a header promises. `pixels_held` is the most that a file of its size can hold.
void checkImageSize(const std::string& name, int64_t height, int64_t width, int64_t pixels_max,
                    uint64_t pixels_held);

}  // namespace dtf::data
