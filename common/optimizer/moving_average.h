#pragma once

// Variables that are not trained: moving averages of measurements on the workers' batches, such as
// the statistics of batch normalisation. They lie in the same arenas as the trained ones, so every
// pull, push, replica, snapshot and checkpoint carries them; only the formula differs.

#include <cstdint>
#include <vector>

#include "common/arena/parameter_layout.h"
#include "common/optimizer/optimizer.h"

namespace dtf::optimizer {

// The elements of one moving average in an arena.
struct MovingRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  float one_minus_momentum = 0;
};

// Returns the ranges of a shard, by begin.
std::vector<MovingRange> movingRanges(const arena::ParameterLayout& layout, uint32_t ps_task);

// Returns how many slots of a variable a checkpoint keeps: none of a moving average, as in
// TensorFlow.
uint32_t slotCount(const cluster::OptimizerSpec& optimizer, const arena::VariableInfo& variable);

// Computes new = old - (old - mean) * (1 - momentum), as in Keras, for elements [begin, end) within
// `range`. The `gradients` of `arrays` are the measurements: their mean is neither clipped nor
// decayed. No slot of the optimizer is touched, except that moving averages of the parameters
// (`average_slot` below kSlotsMax) take the value itself.
void moveRange(const MovingRange& range, const UpdateArrays& arrays, uint32_t average_slot,
               uint64_t begin, uint64_t end);

}  // namespace dtf::optimizer
