#pragma once

// Variables that are not trained: moving averages of what workers measure on their batches, such as
// the statistics of batch normalisation. They lie in the same arenas as the trained ones, so that
// every pull, push, replica, snapshot and checkpoint carries them; only the formula is another.

#include <cstdint>
#include <vector>

#include "common/ps/optimizer.h"
#include "common/ps/parameter_layout.h"

namespace dtf::ps {

// Elements of one arena that are of one moving average.
struct MovingRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  float one_minus_momentum = 0;
};

// Those of a shard, by begin.
std::vector<MovingRange> movingRanges(const ParameterLayout& layout, uint32_t ps_task);

// How many slots of a variable a checkpoint keeps: of a moving average none, as TensorFlow.
uint32_t slotCount(const cluster::OptimizerSpec& optimizer, const VariableInfo& variable);

// new = old - (old - mean) * (1 - momentum), as Keras has it, of elements [begin, end) within
// `range`. The `gradients` of `arrays` are the measurements: their mean is neither clipped nor
// decayed. No slot of the optimizer is touched; where the optimizer keeps moving averages of the
// parameters (`average_slot` below kSlotsMax), that of a moving average is the value itself.
// Thread-safe for disjoint ranges.
void moveRange(const MovingRange& range, const UpdateArrays& arrays, uint32_t average_slot,
               uint64_t begin, uint64_t end);

}  // namespace dtf::ps
