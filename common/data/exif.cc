#include "common/data/exif.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

namespace dtf::data {

namespace {

// Numbers of a file, each checked against its end.
// Borrows: the bytes.
class ExifReader {
 public:
  ExifReader(std::span<const uint8_t> bytes, bool big_endian)
      : bytes_(bytes), big_endian_(big_endian) {}

  std::optional<uint32_t> number(uint64_t at, size_t width) const {
    if (at > bytes_.size() || width > bytes_.size() - at) return std::nullopt;
    uint32_t value = 0;
    for (size_t i = 0; i < width; ++i) {
      const size_t place = big_endian_ ? i : width - 1 - i;
      value = value << 8 | bytes_[at + place];
    }
    return value;
  }

 private:
  const std::span<const uint8_t> bytes_;
  const bool big_endian_;
};

std::string_view charactersOf(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

constexpr std::string_view kExif("Exif\0\0", 6);

// The metadata of a file are a part of it; empty: it has none.
using Metadata = std::span<const uint8_t>;

Metadata jpegMetadata(std::span<const uint8_t> file) {
  constexpr uint32_t kApp1 = 0xE1, kScan = 0xDA, kEnd = 0xD9, kFill = 0xFF;
  constexpr size_t kMarkerBytes = 2, kLengthBytes = 2;
  const ExifReader reader(file, true);
  for (size_t at = kMarkerBytes;;) {  // behind the marker of the beginning
    const auto marker = reader.number(at + 1, 1), length = reader.number(at + kMarkerBytes, 2);
    if (!marker || !length || file[at] != kFill || *marker == kScan || *marker == kEnd) return {};
    if (*marker == kFill) {
      ++at;
      continue;
    }
    if (*length < kLengthBytes || *length > file.size() - at - kMarkerBytes) return {};
    const Metadata segment = file.subspan(at + kMarkerBytes + kLengthBytes, *length - kLengthBytes);
    if (*marker == kApp1 && charactersOf(segment).starts_with(kExif))
      return segment.subspan(kExif.size());
    at += kMarkerBytes + *length;
  }
}

Metadata pngMetadata(std::span<const uint8_t> file) {
  constexpr size_t kSignatureBytes = 8, kHeadBytes = 8, kSumBytes = 4;
  const ExifReader reader(file, true);
  for (size_t at = kSignatureBytes;;) {
    const auto length = reader.number(at, 4);
    if (!length || file.size() - at < kHeadBytes || *length > file.size() - at - kHeadBytes)
      return {};
    if (charactersOf(file.subspan(at + 4, 4)) == "eXIf")
      return file.subspan(at + kHeadBytes, *length);
    at += kHeadBytes + *length + kSumBytes;
    if (at > file.size()) return {};
  }
}

Metadata webpMetadata(std::span<const uint8_t> file) {
  constexpr size_t kHeadBytes = 12, kChunkHeadBytes = 8;
  const ExifReader reader(file, false);
  for (size_t at = kHeadBytes;;) {
    const auto length = reader.number(at + 4, 4);
    if (!length || *length > file.size() - at - kChunkHeadBytes) return {};
    if (charactersOf(file.subspan(at, 4)) == "EXIF") {
      const Metadata chunk = file.subspan(at + kChunkHeadBytes, *length);
      return charactersOf(chunk).starts_with(kExif) ? chunk.subspan(kExif.size()) : chunk;
    }
    at += kChunkHeadBytes + *length + *length % 2;
    if (at > file.size()) return {};
  }
}

Metadata metadataOf(std::span<const uint8_t> file, ImageKind kind) {
  switch (kind) {
    case ImageKind::kJpeg:
      return jpegMetadata(file);
    case ImageKind::kPng:
      return pngMetadata(file);
    case ImageKind::kWebp:
      return webpMetadata(file);
    case ImageKind::kBmp:
    case ImageKind::kNone:
      break;
  }
  return {};
}

// A place in the stored picture, and how it moves while the shown one is written from its first
// row on.
struct Walk {
  int64_t first = 0;
  int64_t by_column = 0, by_row = 0;
};

// In pixels of a picture of `height` rows of `width`.
Walk walkOf(Orientation orientation, int64_t height, int64_t width) {
  const int64_t right = width - 1, bottom = (height - 1) * width;
  switch (orientation) {
    case Orientation::kUpright:
      break;
    case Orientation::kMirrored:
      return {right, -1, width};
    case Orientation::kUpsideDown:
      return {bottom + right, -1, -width};
    case Orientation::kMirroredUpsideDown:
      return {bottom, 1, -width};
    case Orientation::kTransposed:
      return {0, width, 1};
    case Orientation::kTurnedRight:
      return {bottom, -width, 1};
    case Orientation::kTransversed:
      return {bottom + right, -width, -1};
    case Orientation::kTurnedLeft:
      return {right, width, -1};
  }
  return {0, 1, width};
}

}  // namespace

Orientation orientationOf(std::span<const uint8_t> file, ImageKind kind) {
  return exifOrientation(metadataOf(file, kind));
}

Orientation exifOrientation(std::span<const uint8_t> tiff) {
  constexpr uint32_t kTag = 0x0112, kShort = 3, kEntryBytes = 12;
  const std::string_view begin = charactersOf(tiff.first(std::min<size_t>(tiff.size(), 4)));
  const bool big_endian = begin == std::string_view("MM\0*", 4);
  if (!big_endian && begin != std::string_view("II*\0", 4)) return Orientation::kUpright;
  const ExifReader reader(tiff, big_endian);
  const uint64_t entries = reader.number(4, 4).value_or(0);
  const uint32_t count = reader.number(entries, 2).value_or(0);  // two bytes: at most 65535
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t at = entries + 2 + uint64_t{i} * kEntryBytes;
    const auto tag = reader.number(at, 2), type = reader.number(at + 2, 2),
               value = reader.number(at + 8, 2);
    if (!tag || !type || !value) break;
    if (*tag != kTag) continue;
    const bool known = *type == kShort && *value >= 1 && *value <= 8;
    return known ? static_cast<Orientation>(*value) : Orientation::kUpright;
  }
  return Orientation::kUpright;
}

Image turnedUpright(Image image, Orientation orientation) {
  if (orientation == Orientation::kUpright) return image;
  const Walk walk = walkOf(orientation, image.height, image.width);
  const bool on_its_side = orientation >= Orientation::kTransposed;
  Image shown{on_its_side ? image.width : image.height, on_its_side ? image.height : image.width,
              image.channels, ByteBlock(image.pixels.size())};
  const uint8_t* const from = image.pixels.data();
  uint8_t* to = shown.pixels.data();
  for (int64_t row = 0; row < shown.height; ++row) {
    int64_t at = walk.first + row * walk.by_row;
    for (int64_t column = 0; column < shown.width; ++column, at += walk.by_column)
      to = std::copy_n(from + at * image.channels, image.channels, to);
  }
  return shown;
}

}  // namespace dtf::data
