#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "common/data/image_codecs.h"

namespace dtf::data {

namespace {

constexpr int64_t kBmpColours = 3;
constexpr size_t kFileHeadBytes = 14;
// BITMAPCOREHEADER has sizes of 16 bits and a palette of three bytes a colour.
constexpr uint32_t kCoreHeadBytes = 12, kInfoHeadBytes = 40;
constexpr uint32_t kUncompressed = 0, kByMasks = 3;

// One BMP file in memory: https://learn.microsoft.com/windows/win32/gdi/bitmap-storage
// Borrows: the bytes and the name.
// Threads: thread-compatible.
// Errors: kBadData.
class BmpReader {
 public:
  BmpReader(std::span<const uint8_t> bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  Image read(int64_t pixels_max) {
    readHead();
    checkImageSize(name_, height_, width_, pixels_max, uint64_t{bytes_.size()} * 8 / bits_);
    row_bytes_ = static_cast<size_t>((width_ * bits_ + 31) / 32 * 4);
    // Some programs leave out the padding of the last row.
    const size_t last = static_cast<size_t>((width_ * bits_ + 7) / 8);
    const size_t needed = row_bytes_ * static_cast<size_t>(height_ - 1) + last;
    if (pixels_at_ > bytes_.size() || needed > bytes_.size() - pixels_at_)
      failImage(name_, fmt::format("cut off: its pixels take {} bytes from {} on, the file has {}",
                                   needed, pixels_at_, bytes_.size()));
    if (bits_ <= 8) readPalette();
    Image image{height_, width_, kBmpColours,
                ByteBlock(static_cast<size_t>(height_ * width_ * kBmpColours))};
    for (int64_t row = 0; row < height_; ++row) {
      const auto stored = static_cast<size_t>(top_down_ ? row : height_ - 1 - row);
      const uint8_t* const from = bytes_.data() + pixels_at_ + stored * row_bytes_;
      uint8_t* const to = image.pixels.data() + static_cast<size_t>(row * width_ * kBmpColours);
      bits_ <= 8 ? readIndices(from, to) : readColours(from, to);
    }
    return image;
  }

 private:
  uint32_t number(size_t at, size_t width) const {
    if (at > bytes_.size() || width > bytes_.size() - at)
      failImage(name_, "cut off: the file ends in its header");
    uint32_t value = 0;
    for (size_t i = width; i-- > 0;) value = value << 8 | bytes_[at + i];
    return value;
  }

  void readHead() {
    pixels_at_ = number(10, 4);
    head_bytes_ = number(kFileHeadBytes, 4);
    const bool core = head_bytes_ == kCoreHeadBytes;
    if (!core && head_bytes_ < kInfoHeadBytes)
      failImage(name_, fmt::format("damaged BMP image: its header has {} bytes", head_bytes_));
    const auto side = [&](size_t at) -> int64_t {
      if (core) return number(at, 2);
      return static_cast<int32_t>(number(at, 4));
    };
    width_ = side(18);
    height_ = side(core ? 20 : 22);
    top_down_ = height_ < 0;
    height_ = std::abs(height_);
    bits_ = static_cast<int64_t>(number(core ? 24 : 28, 2));
    const uint32_t compression = core ? kUncompressed : number(30, 4);
    const bool by_masks = compression == kByMasks && bits_ == 32;
    if (compression != kUncompressed && !by_masks)
      failImage(name_, fmt::format("a compressed BMP image (of kind {} and {} bits a pixel), which "
                                   "isn't read: save it uncompressed, or as PNG",
                                   compression, bits_));
    if (bits_ != 1 && bits_ != 4 && bits_ != 8 && bits_ != 24 && bits_ != 32)
      failImage(name_, fmt::format("a BMP image of {} bits a pixel, and 1, 4, 8, 24 and 32 are "
                                   "read: save it with 24, or as PNG",
                                   bits_));
    if (by_masks) readMasks();
  }

  // A mask of a whole byte is the place of a colour in its pixel.
  void readMasks() {
    constexpr size_t kMasksAt = kFileHeadBytes + kInfoHeadBytes;
    for (size_t colour = 0; colour < kBmpColours; ++colour) {
      const uint32_t mask = number(kMasksAt + colour * 4, 4);
      size_t place = 0;
      while (place < 4 && mask != uint32_t{0xFF} << (8 * place)) ++place;
      if (place == 4)
        failImage(name_, fmt::format("a BMP image of colours that aren't bytes (mask {:08x}): save "
                                     "it with 24 bits a pixel, or as PNG",
                                     mask));
      places_[colour] = place;
    }
  }

  void readPalette() {
    const bool core = head_bytes_ == kCoreHeadBytes;
    const uint32_t most = uint32_t{1} << bits_;
    const uint32_t stated = core ? 0 : number(46, 4);
    if (stated > most)
      failImage(name_, fmt::format("damaged BMP image: a palette of {} colours", stated));
    colours_ = stated == 0 ? most : stated;
    const size_t entry = core ? 3 : 4;
    for (size_t i = 0; i < colours_; ++i) {
      const uint32_t colour = number(kFileHeadBytes + head_bytes_ + i * entry, 3);
      for (size_t channel = 0; channel < kBmpColours; ++channel)
        palette_[i][channel] = static_cast<uint8_t>(colour >> (8 * (2 - channel)));
    }
  }

  void readIndices(const uint8_t* from, uint8_t* to) const {
    const auto bits = static_cast<size_t>(bits_), each = 8 / bits;
    for (size_t pixel = 0; pixel < static_cast<size_t>(width_); ++pixel) {
      const size_t shift = bits * (each - 1 - pixel % each);
      const size_t index = from[pixel / each] >> shift & ((size_t{1} << bits) - 1);
      if (index >= colours_)
        failImage(name_,
                  fmt::format("damaged BMP image: a pixel has colour {} of {}", index, colours_));
      to = std::copy_n(palette_[index].data(), kBmpColours, to);
    }
  }

  void readColours(const uint8_t* from, uint8_t* to) const {
    for (int64_t pixel = 0; pixel < width_; ++pixel, from += bits_ / 8)
      for (const size_t place : places_) *to++ = from[place];
  }

  const std::span<const uint8_t> bytes_;
  const std::string& name_;
  uint32_t pixels_at_ = 0, head_bytes_ = 0;
  int64_t height_ = 0, width_ = 0, bits_ = 0;
  bool top_down_ = false;
  size_t row_bytes_ = 0;
  std::array<size_t, kBmpColours> places_ = {2, 1, 0};  // of red, green and blue in a pixel
  size_t colours_ = 0;                                  // of the palette
  std::array<std::array<uint8_t, kBmpColours>, 256> palette_{};
};

}  // namespace

bool isBmp(std::span<const uint8_t> first) {
  constexpr size_t kReservedAt = 6, kHeadAt = 14;
  constexpr std::array<uint8_t, 7> kHeadBytes = {12, 40, 52, 56, 64, 108, 124};
  if (first.size() < kHeadAt + 4 || first[0] != 'B' || first[1] != 'M') return false;
  const bool reserved = std::all_of(first.begin() + kReservedAt, first.begin() + kReservedAt + 4,
                                    [](uint8_t byte) { return byte == 0; });
  return reserved && first[kHeadAt + 1] == 0 && first[kHeadAt + 2] == 0 &&
         first[kHeadAt + 3] == 0 &&
         std::find(kHeadBytes.begin(), kHeadBytes.end(), first[kHeadAt]) != kHeadBytes.end();
}

Image decodeBmp(std::span<const uint8_t> bytes, const std::string& name, int64_t pixels_max) {
  return BmpReader(bytes, name).read(pixels_max);
}

}  // namespace dtf::data
