#include "common/data/augment.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/base/random.h"
#include "common/base/random_streams.h"

namespace dtf::data {

namespace {

const PartSpec& checkImage(const PartSpec& image) {
  DTF_CHECK_MSG(image.shape.rank() == 2 || image.shape.rank() == 3, image.shape.str());
  return image;
}

}  // namespace

Augmenter::Augmenter(const cluster::AugmentSpec& spec, const PartSpec& image, uint64_t seed)
    : spec_(spec),
      height_(checkImage(image).shape.dim(0)),
      width_(image.shape.dim(1)),
      pixel_bytes_(image.bytes() / static_cast<size_t>(height_ * width_)),
      seed_(seed) {
  DTF_CHECK(spec.crop_padding >= 0 && height_ > 0 && width_ > 0);
}

// Copies a row: its pixel x is pixel x + shift of the image, or 0 beyond the border.
void Augmenter::copyRow(const uint8_t* from, int64_t shift, bool mirrored, uint8_t* to) const {
  const int64_t first = std::clamp<int64_t>(-shift, 0, width_);
  const int64_t last = std::clamp<int64_t>(width_ - shift, first, width_);
  const auto bytes = [this](int64_t pixels) { return static_cast<size_t>(pixels) * pixel_bytes_; };
  if (!mirrored) {
    std::memset(to, 0, bytes(first));
    if (last > first)
      std::memcpy(to + bytes(first), from + bytes(first + shift), bytes(last - first));
    std::memset(to + bytes(last), 0, bytes(width_ - last));
    return;
  }
  std::memset(to, 0, bytes(width_));
  for (int64_t x = first; x < last; ++x)
    std::memcpy(to + bytes(width_ - 1 - x), from + bytes(x + shift), pixel_bytes_);
}

void Augmenter::apply(uint64_t epoch, uint32_t example, std::span<const uint8_t> from,
                      std::span<uint8_t> to) const {
  const size_t row_bytes = static_cast<size_t>(width_) * pixel_bytes_;
  DTF_CHECK(from.size() == row_bytes * static_cast<size_t>(height_) && to.size() == from.size());
  // The stream has 24 bits of the epoch: after 2^24 epochs the numbers repeat.
  Random random(seed_, streamOf(RandomStream::kAugmentation, epoch << 32 | example));
  const auto moves = static_cast<uint64_t>(2 * spec_.crop_padding + 1);
  const int64_t down = static_cast<int64_t>(random.below(moves)) - spec_.crop_padding;
  const int64_t right = static_cast<int64_t>(random.below(moves)) - spec_.crop_padding;
  const bool mirrored = spec_.flip_horizontal && random.below(2) == 1;
  for (int64_t y = 0; y < height_; ++y) {
    uint8_t* const row = to.data() + static_cast<size_t>(y) * row_bytes;
    const int64_t source = y + down;
    if (source < 0 || source >= height_)
      std::memset(row, 0, row_bytes);
    else
      copyRow(from.data() + static_cast<size_t>(source) * row_bytes, right, mirrored, row);
  }
}

}  // namespace dtf::data
