#pragma once

// Decodes PNG, JPEG, WebP and BMP files, told apart by content, not by name.
//
// Colours become 8 bits a channel, grey or red, green and blue, like in Pillow (convert("RGB"),
// convert("L")): transparency is dropped and not painted on a background; colour profiles and gamma
// are ignored; grey is 0.299 R + 0.587 G + 0.114 B; CMYK is Adobe's (inverted). Unlike Pillow, 16
// bits are scaled to 8 and not cut off at 255. The image is turned as the orientation in its EXIF
// metadata says, like by Pillow's ImageOps.exif_transpose().
//
// Files are untrusted: the size in a header is bounded, and compared with the most that the file
// can hold, before memory is allocated.

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

enum class ImageKind : uint8_t { kNone, kPng, kJpeg, kWebp, kBmp };

// Returns the kind by the first bytes of a file, of which 18 are enough.
ImageKind imageKind(std::span<const uint8_t> first);

// Returns the image in `channels` channels, 1 or 3 (DTF_CHECK). `name` is the file, for messages.
// Thread-safe.
// Errors: kBadData naming the file: no image of these kinds (and what it looks like), cut off,
// damaged, empty, larger than `pixels_max` or kImageSideMax; kUnavailable without memory for a JPEG
// or WebP file. Damage that libjpeg can mend is accepted.
Image decodeImage(std::span<const uint8_t> bytes, const std::string& name, int64_t channels,
                  int64_t pixels_max = kImagePixelsMax);

}  // namespace dtf::data
