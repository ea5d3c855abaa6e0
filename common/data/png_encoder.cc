#include "common/data/png_encoder.h"

#include <png.h>

#include <limits>

#include "common/base/check.h"

namespace dtf::data {

namespace {

png_uint_32 formatOf(int64_t channels) {
  if (channels == 1) return PNG_FORMAT_GRAY;
  if (channels == 3) return PNG_FORMAT_RGB;
  DTF_CHECK_MSG(channels == 4, std::to_string(channels));
  return PNG_FORMAT_RGBA;
}

}  // namespace

std::string encodePng(int64_t height, int64_t width, int64_t channels,
                      std::span<const uint8_t> pixels) {
  constexpr int64_t kSideMax = std::numeric_limits<png_int_32>::max() / 4;
  DTF_CHECK(height > 0 && width > 0 && height <= kSideMax && width <= kSideMax);
  DTF_CHECK(static_cast<int64_t>(pixels.size()) == height * width * channels);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.format = formatOf(channels);
  image.height = static_cast<png_uint_32>(height);
  image.width = static_cast<png_uint_32>(width);
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string encoded(bytes, '\0');
  const int done =
      png_image_write_to_memory(&image, encoded.data(), &bytes, 0, pixels.data(), 0, nullptr);
  DTF_CHECK_MSG(done != 0, std::string(image.message));
  encoded.resize(bytes);
  return encoded;
}

}  // namespace dtf::data
