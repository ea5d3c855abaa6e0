#pragma once

// PNG and JPEG files to pixels, told apart by content: names lie.
//
// Colours become what a network is fed: 8 bits a channel, grey or red, green and blue. As Pillow
// does it (convert("RGB"), convert("L")): transparency is dropped and not painted on anything,
// colour profiles, gamma and the orientation in EXIF are not applied, grey is 0.299 R + 0.587 G +
// 0.114 B, CMYK is taken as Adobe's (inverted). Other than there, 16 bits are scaled to 8 and not
// cut off at 255.
//
// Files are untrusted: the size that a header promises is bounded, and compared with what the file
// can hold, before memory is taken for it.

#include <cstdint>
#include <span>
#include <string>

#include "common/data/part.h"

namespace dtf::data {

inline constexpr int64_t kImageSideMax = 32768;
inline constexpr int64_t kImagePixelsMax = int64_t{1} << 26;
inline constexpr size_t kImageFileBytesMax = size_t{256} << 20;

// Rows from the top; the channels of a pixel side by side.
struct Image {
  int64_t height = 0, width = 0;
  int64_t channels = 0;  // 1: grey; 3: red, green, blue
  ByteBlock pixels;
};

enum class ImageKind : uint8_t { kNone, kPng, kJpeg };

// By the first bytes of a file.
ImageKind imageKind(std::span<const uint8_t> first);

// The image in `channels` channels, 1 or 3 (DTF_CHECK). `name` is what messages call the file.
// Thread-safe.
// Errors: kBadData naming the file: neither PNG nor JPEG (and what it looks like), cut off,
// damaged, empty, larger than `pixels_max` or kImageSideMax. What libjpeg can mend is taken as it
// is.
Image decodeImage(std::span<const uint8_t> bytes, const std::string& name, int64_t channels,
                  int64_t pixels_max = kImagePixelsMax);

}  // namespace dtf::data
