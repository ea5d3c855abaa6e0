#pragma once

// Which Philox stream each user of a job's one seed draws from: the use in the top byte, the number
// of the image or epoch below. Two uses never share numbers. (Top bytes
// from 0x10: initial values in common/train, 0x11: dropout masks in common/runtime.)

#include <cstdint>

namespace dtf::data {

enum class Stream : uint8_t { kTrainImages = 1, kEvalImages = 2, kBatchOrder = 3 };

constexpr uint64_t streamOf(Stream use, uint64_t number) {
  return (uint64_t{static_cast<uint8_t>(use)} << 56) | (number & ((uint64_t{1} << 56) - 1));
}

}  // namespace dtf::data
