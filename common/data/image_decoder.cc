#include "common/data/image_decoder.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/data/exif.h"
#include "common/data/file_kind.h"
#include "common/data/image_codecs.h"

namespace dtf::data {

namespace {

constexpr int64_t kColours = 3;

// ITU-R BT.601, in whole numbers.
uint8_t greyOf(const uint8_t* colours) {
  constexpr uint32_t kRed = 19595, kGreen = 38470, kBlue = 7471, kHalf = 1 << 15;
  static_assert(kRed + kGreen + kBlue == 1 << 16);
  return static_cast<uint8_t>(
      (kRed * colours[0] + kGreen * colours[1] + kBlue * colours[2] + kHalf) >> 16);
}

Image withChannels(Image image, int64_t channels) {
  DTF_CHECK(image.channels == 1 || image.channels == kColours);
  if (image.channels == channels) return image;
  const int64_t pixels = image.height * image.width;
  Image converted{image.height, image.width, channels,
                  ByteBlock(static_cast<size_t>(pixels * channels))};
  const uint8_t* from = image.pixels.data();
  uint8_t* to = converted.pixels.data();
  for (int64_t pixel = 0; pixel < pixels; ++pixel, from += image.channels, to += channels)
    if (channels == 1)
      *to = greyOf(from);
    else
      std::fill_n(to, kColours, *from);
  return converted;
}

Image decodeKind(ImageKind kind, std::span<const uint8_t> bytes, const std::string& name,
                 int64_t pixels_max) {
  switch (kind) {
    case ImageKind::kPng:
      return decodePng(bytes, name, pixels_max);
    case ImageKind::kJpeg:
      return decodeJpeg(bytes, name, pixels_max);
    case ImageKind::kWebp:
      return decodeWebp(bytes, name, pixels_max);
    case ImageKind::kBmp:
      return decodeBmp(bytes, name, pixels_max);
    case ImageKind::kNone:
      break;
  }
  failImage(name, fmt::format("this looks like {}; expected a PNG, JPEG, WebP or BMP image",
                              fileKind(bytes.first(std::min(bytes.size(), kKindBytes)))));
}

}  // namespace

void failImage(const std::string& name, const std::string& why) {
  throw Error(ErrorCode::kBadData, printable(name + ": " + why));
}

void checkImageSize(const std::string& name, int64_t height, int64_t width, int64_t pixels_max,
                    uint64_t pixels_held) {
  const std::string promised = fmt::format("the header promises {} x {} pixels", width, height);
  if (height < 1 || width < 1) failImage(name, promised);
  if (height > kImageSideMax || width > kImageSideMax || height * width > pixels_max)
    failImage(name, fmt::format("too large: {}, at most {} on a side and {} in all are read",
                                promised, kImageSideMax, pixels_max));
  if (static_cast<uint64_t>(height * width) > pixels_held)
    failImage(name, fmt::format("cut off: {}, but a file of this size can't hold more than {}",
                                promised, pixels_held));
}

ImageKind imageKind(std::span<const uint8_t> first) {
  const std::string_view begin(reinterpret_cast<const char*>(first.data()), first.size());
  if (begin.starts_with("\x89PNG\r\n\x1a\n")) return ImageKind::kPng;
  if (begin.starts_with("\xff\xd8\xff")) return ImageKind::kJpeg;
  if (begin.starts_with("RIFF") &&
      begin.substr(std::min<size_t>(begin.size(), 8)).starts_with("WEBPVP8"))
    return ImageKind::kWebp;
  return isBmp(first) ? ImageKind::kBmp : ImageKind::kNone;
}

Image decodeImage(std::span<const uint8_t> bytes, const std::string& name, int64_t channels,
                  int64_t pixels_max) {
  DTF_CHECK((channels == 1 || channels == kColours) && pixels_max > 0 && !name.empty());
  if (bytes.empty()) failImage(name, "the file is empty");
  const ImageKind kind = imageKind(bytes);
  return turnedUpright(withChannels(decodeKind(kind, bytes, name, pixels_max), channels),
                       orientationOf(bytes, kind));
}

}  // namespace dtf::data
