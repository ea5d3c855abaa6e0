#pragma once

// The parts of decodeImage() (image_decoder.h), one for each kind of file. PNG and JPEG keep the
// file's channels; the others return three.

#include <cstdint>
#include <span>
#include <string>

#include "common/data/image_decoder.h"

namespace dtf::data {

// Errors: see decodeImage().
Image decodePng(std::span<const uint8_t> bytes, const std::string& name, int64_t pixels_max);
Image decodeJpeg(std::span<const uint8_t> bytes, const std::string& name, int64_t pixels_max);
Image decodeWebp(std::span<const uint8_t> bytes, const std::string& name, int64_t pixels_max);
Image decodeBmp(std::span<const uint8_t> bytes, const std::string& name, int64_t pixels_max);

// Whether the first bytes are a BMP's. "BM" alone may begin a table.
bool isBmp(std::span<const uint8_t> first);

// Throws "NAME: why" as kBadData.
[[noreturn]] void failImage(const std::string& name, const std::string& why);

// Rejects impossible sizes of a header. `pixels_held` is the most that a file of its size can hold.
void checkImageSize(const std::string& name, int64_t height, int64_t width, int64_t pixels_max,
                    uint64_t pixels_held);

}  // namespace dtf::data
