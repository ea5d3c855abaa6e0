#pragma once

// The Philox streams that draw from a job's one seed: the use in the top byte, below it the number
// of the image, epoch, variable or layer. Two uses never share numbers. This is the list of all
// uses. A number here is part of the meaning of a seed: none is changed or reused.

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
