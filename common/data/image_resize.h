#pragma once

// Resizes images with the same bits as Pillow's resize(size, BILINEAR), which torchvision's Resize
// calls. Each pixel is the mean of the pixels around its centre, weighted by a triangle that is as
// wide as a pixel of the result (antialiasing) and at least as wide as one of the image; first
// along the rows, then along the columns, each rounded to 8 bits. It only adds, multiplies and
// divides: the same on every machine.

#include <cstdint>
#include <span>

#include "common/cluster/data_spec.h"
#include "common/data/image_decoder.h"

namespace dtf::data {

// Writes `image` as [height, width, image.channels] to `to`, which has as many bytes (DTF_CHECK).
// With kCrop it reads only the largest middle part with the proportions of the result.
void resizeImage(const Image& image, cluster::ImagesSpec::Resize how, int64_t height, int64_t width,
                 std::span<uint8_t> to);

}  // namespace dtf::data
