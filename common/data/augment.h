#pragma once

// Data augmentation: images that change a little each time they are read. The change is a pure
// function of (seed, epoch, example): a resumed run, or one with another number of workers, reads
// the same images as an uninterrupted one.

#include <cstdint>
#include <span>

#include "common/cluster/data_spec.h"
#include "common/data/part.h"

namespace dtf::data {

// Immutable after construction, hence thread-safe.
class Augmenter {
 public:
  // `image` is [height, width] or [height, width, channels] (DTF_CHECK), of any element type.
  Augmenter(const cluster::AugmentSpec& spec, const PartSpec& image, uint64_t seed);

  // Writes example `example` as it is in `epoch`: a window of the same size, moved by at most the
  // padding in each direction, with 0 beyond the border, then mirrored or not. Both spans hold one
  // image (DTF_CHECK).
  void apply(uint64_t epoch, uint32_t example, std::span<const uint8_t> from,
             std::span<uint8_t> to) const;

 private:
  void copyRow(const uint8_t* from, int64_t shift, bool mirrored, uint8_t* to) const;

  const cluster::AugmentSpec spec_;
  const int64_t height_;
  const int64_t width_;
  const size_t pixel_bytes_;
  const uint64_t seed_;
};

}  // namespace dtf::data
