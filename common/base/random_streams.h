#pragma once

// Which Philox stream each user of a job's one seed draws from: the use in the top byte, the number
// of the image, epoch, variable or layer below. Two uses never share numbers. This is the list of
// all uses; a number here is part of what a seed means, so none is ever changed or used again.

#include <cstdint>

namespace dtf {

enum class RandomStream : uint8_t {
  kTrainImages = 1,
  kEvalImages = 2,
  kBatchOrder = 3,
  kTrainTables = 4,
  kEvalTables = 5,
  kTableRules = 6,
  kAugmentation = 7,
  kInitialValues = 0x10,
  kDropoutMasks = 0x11,  // their kernels draw blocks by themselves: see standard_nn_ops.cc
  kRandomOps = 0x12,     // likewise: see standard_random_ops.cc
};

constexpr uint64_t streamOf(RandomStream use, uint64_t number) {
  return (uint64_t{static_cast<uint8_t>(use)} << 56) | (number & ((uint64_t{1} << 56) - 1));
}

}  // namespace dtf
