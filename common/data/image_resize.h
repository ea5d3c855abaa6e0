#pragma once

// Images made larger or smaller, to the bit as Pillow's resize(size, BILINEAR) does it, which
// torchvision's Resize calls: each pixel is the mean of those around its centre, weighted by a
// triangle that is as wide as a pixel of the result (antialiasing) and at least as wide as one of
// the image; first along the rows, then along the columns, each rounded to 8 bits. The same on
// every machine: additions, multiplications and divisions alone.

#include <cstdint>
#include <span>

#include "common/cluster/data_spec.h"
#include "common/data/image_decoder.h"

namespace dtf::data {

// Writes `image` as [height, width, image.channels] to `to`, which has as many bytes (DTF_CHECK).
// With kCrop only as much of its middle is taken as has the proportions of the result.
void resizeImage(const Image& image, cluster::ImagesSpec::Resize how, int64_t height, int64_t width,
                 std::span<uint8_t> to);

}  // namespace dtf::data
