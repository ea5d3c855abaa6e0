#pragma once

// The orientation of an image in its EXIF metadata: cameras store the picture as the sensor sees
// it, and the turn that shows it upright.
//
// Metadata are untrusted, and no reason to reject an image: metadata that can't be read say
// nothing.

#include <cstdint>
#include <span>

#include "common/data/image_decoder.h"

namespace dtf::data {

// TIFF's tag 0x0112: the side of the stored picture at which its first row and column are shown.
enum class Orientation : uint8_t {
  kUpright = 1,
  kMirrored = 2,
  kUpsideDown = 3,
  kMirroredUpsideDown = 4,
  kTransposed = 5,
  kTurnedRight = 6,  // shown after a quarter turn to the right
  kTransversed = 7,
  kTurnedLeft = 8,
};

// Returns the orientation in a file of that kind: in the segment APP1 of a JPEG, the chunk eXIf of
// a PNG, the chunk EXIF of a WebP. A BMP has none.
Orientation orientationOf(std::span<const uint8_t> file, ImageKind kind);

// Returns the orientation in EXIF metadata, a TIFF file.
Orientation exifOrientation(std::span<const uint8_t> tiff);

// Returns the image as it is shown.
Image turnedUpright(Image image, Orientation orientation);

}  // namespace dtf::data
