#include "common/train/batch_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/base/check.h"

namespace dtf::train {

namespace {

// Returns the pixels of one image, from its element `first` on.
std::vector<uint8_t> pixelsAt(const Tensor& features, size_t first, size_t size) {
  if (features.dtype() == DType::kUInt8) {
    const std::span<const uint8_t> pixels = features.as<uint8_t>().subspan(first, size);
    return {pixels.begin(), pixels.end()};
  }
  if (features.dtype() == DType::kInt32) {
    const std::span<const int32_t> numbers = features.as<int32_t>().subspan(first, size);
    return pixelsOf(std::vector<float>(numbers.begin(), numbers.end()));
  }
  return pixelsOf(features.as<float>().subspan(first, size));
}

}  // namespace

std::vector<uint8_t> pixelsOf(std::span<const float> numbers) {
  float least = 0, most = 0;
  for (const float each : numbers) {
    if (!std::isfinite(each)) continue;
    least = std::min(least, each);
    most = std::max(most, each);
  }
  const float zero = least < 0 ? 127 : 0;
  float scale = most > 0 ? (255 - zero) / most : 0;
  if (least < 0) scale = most > 0 ? std::min(scale, zero / -least) : zero / -least;
  std::vector<uint8_t> pixels;
  pixels.reserve(numbers.size());
  for (const float each : numbers) {
    // The scale is infinite if all numbers are tiny.
    const float shown = zero + scale * each;
    pixels.push_back(
        static_cast<uint8_t>(std::isfinite(shown) ? std::clamp(shown, 0.0F, 255.0F) : zero));
  }
  return pixels;
}

uint64_t addImages(const Tensor& features, uint64_t count, summary::StepSummary& to,
                   uint64_t bytes_max) {
  const Shape& shape = features.shape();
  DTF_CHECK_MSG(shape.rank() == 3 || shape.rank() == 4, shape.str());
  const int64_t channels = shape.rank() == 4 ? shape.dim(3) : 1;
  const auto size = static_cast<size_t>(shape.dim(1) * shape.dim(2) * channels);
  const uint64_t asked = std::min(count, static_cast<uint64_t>(shape.dim(0)));
  const uint64_t shown = size == 0 ? 0 : std::min(asked, bytes_max / size);
  for (uint64_t i = 0; i < shown; ++i)
    to.images.push_back({fmt::format("features/image/{}", i), shape.dim(1), shape.dim(2), channels,
                         pixelsAt(features, i * size, size)});
  return asked - shown;
}

}  // namespace dtf::train
