#include "common/optimizer/moving_average.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/optimizer/gradient_math.h"

namespace dtf::optimizer {

std::vector<MovingRange> movingRanges(const arena::ParameterLayout& layout, uint32_t ps_task) {
  std::vector<MovingRange> ranges;
  for (const arena::Slice& slice : layout.shards.at(ps_task).slices) {
    const std::optional<double>& momentum = layout.variables.at(slice.variable).momentum;
    if (!momentum) continue;
    DTF_CHECK(*momentum >= 0 && *momentum < 1);
    DTF_CHECK(ranges.empty() || ranges.back().end <= slice.offset);
    ranges.push_back({slice.offset, slice.offset + slice.count, static_cast<float>(1 - *momentum)});
  }
  return ranges;
}

uint32_t slotCount(const cluster::OptimizerSpec& optimizer, const arena::VariableInfo& variable) {
  return variable.momentum ? 0 : slotCount(optimizer);
}

void moveRange(const MovingRange& range, const UpdateArrays& arrays, uint32_t average_slot,
               uint64_t begin, uint64_t end) {
  DTF_CHECK(range.begin <= begin && begin <= end && end <= range.end);
  DTF_CHECK(arrays.new_parameters != arrays.old_parameters);
  DTF_CHECK(average_slot == kSlotsMax || arrays.slots.at(average_slot) != nullptr);
  constexpr UpdateConstants kAsMeasured;
  alignas(64) float buffer[kChunkElements];
  for (uint64_t at = begin; at < end; at += kChunkElements) {
    const uint64_t n = std::min(kChunkElements, end - at);
    const float* const measured = effectiveGradient(kAsMeasured, arrays, at, n, buffer);
    float* const moved = arrays.new_parameters + at;
    std::memcpy(moved, arrays.old_parameters + at, n * sizeof(float));
    moveAverage(moved, measured, range.one_minus_momentum, n);
    if (average_slot != kSlotsMax)
      std::memcpy(arrays.slots[average_slot] + at, moved, n * sizeof(float));
  }
}

}  // namespace dtf::optimizer
