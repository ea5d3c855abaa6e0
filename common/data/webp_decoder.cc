#include <fmt/core.h>
#include <webp/decode.h>

#include <algorithm>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/data/image_codecs.h"

namespace dtf::data {

namespace {

constexpr int64_t kWebpColours = 3;
// A plain colour takes no bits, so a file of 40 bytes may promise any size. An image of more pixels
// than the first number must have a byte of file for so many as the second.
constexpr int64_t kPlainPixelsMax = int64_t{1} << 22;
constexpr int64_t kWebpPixelsPerByteMax = 256;

// The size in the head of the container, RIFF.
uint64_t promisedBytes(std::span<const uint8_t> bytes) {
  constexpr size_t kSizeAt = 4, kHeadBytes = 8;
  uint64_t size = 0;
  for (size_t i = 4; i-- > 0;) size = size << 8 | bytes[kSizeAt + i];
  return size + kHeadBytes;
}

void checkWebp(VP8StatusCode status, const std::string& name) {
  switch (status) {
    case VP8_STATUS_OK:
      return;
    case VP8_STATUS_OUT_OF_MEMORY:
      throw Error(ErrorCode::kUnavailable, name + ": this host has no memory left to decode it");
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      failImage(name, "damaged WebP image: the file is cut off");
    case VP8_STATUS_INVALID_PARAM:
    case VP8_STATUS_BITSTREAM_ERROR:
    case VP8_STATUS_UNSUPPORTED_FEATURE:
    case VP8_STATUS_USER_ABORT:
      break;
  }
  failImage(name, "damaged WebP image");
}

}  // namespace

Image decodeWebp(std::span<const uint8_t> bytes, const std::string& name, int64_t pixels_max) {
  if (promisedBytes(bytes) > bytes.size())
    failImage(name, "damaged WebP image: the file is cut off");
  WebPBitstreamFeatures features{};
  checkWebp(WebPGetFeatures(bytes.data(), bytes.size(), &features), name);
  if (features.has_animation != 0)
    failImage(name, "an animated WebP image: save one of its pictures alone");
  const int64_t height = features.height, width = features.width;
  checkImageSize(name, height, width, pixels_max, ~uint64_t{0});
  const int64_t held =
      std::max(kPlainPixelsMax, static_cast<int64_t>(bytes.size()) * kWebpPixelsPerByteMax);
  if (height * width > held)
    failImage(name, fmt::format("too large: the header promises {} x {} pixels, at most {} are "
                                "read from {} bytes",
                                width, height, held, bytes.size()));
  Image image{height, width, kWebpColours,
              ByteBlock(static_cast<size_t>(height * width * kWebpColours))};
  WebPDecoderConfig config;
  DTF_CHECK_MSG(WebPInitDecoderConfig(&config) != 0, "libwebp is another than this was built with");
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {image.pixels.data(), static_cast<int>(width * kWebpColours),
                          image.pixels.size()};
  checkWebp(WebPDecode(bytes.data(), bytes.size(), &config), name);
  return image;
}

}  // namespace dtf::data
