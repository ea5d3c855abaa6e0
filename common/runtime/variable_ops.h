#pragma once

// Ops on the variables that a device keeps from step to step (train/device_arena.h); no graph
// contains them. The arrays are arenas in the layout of arena/parameter_layout.h, all variables of
// a worker one behind the other, or whole lines of one, so that one launch covers all of them. A
// device without these kernels keeps no variables.

#include <cstdint>
#include <string_view>

namespace dtf::runtime {

// Elements; each variable starts on a new line.
inline constexpr int64_t kArenaLine = 16;

// An in-place update with the formulae of optimizer/optimizer.h, to the bit.
//
//   inputs   learning rate and weight decay of this update [2] (as optimizer::UpdateConstants has
//            them), kinds uint8 [lines], rates [statistics], gradient, parameters, the optimizer's
//            slots, moving averages where they are kept
//   outputs  parameters, slots, moving averages: in the memory of those inputs
//
// A line's kind is 0 if it is trained. Otherwise it belongs to a statistic, which moves towards the
// value in place of its gradient by rates[kind - 1], optimizer::MovingRange::one_minus_momentum.
// Attributes: `kind`, a cluster::OptimizerSpec::Kind (its numbers are part of the plug-in boundary:
// changing them needs a new DTF_DEVICE_PLUGIN_VERSION); `averages` (bool); the other constants of
// optimizer::UpdateConstants, by their names there.
inline constexpr std::string_view kApplyOptimizerOp = "_ApplyOptimizer";
inline constexpr int64_t kStatisticKindsMax = 255;

// The mean of the towers' gradients: their sum in this order, times the attribute `share`, as in
// train/tower_group.h.
//
//   inputs   one array for each tower, kTowersMax at most
//   outputs  one: it may be in the memory of any input
inline constexpr std::string_view kMeanOfTowersOp = "_MeanOfTowers";
inline constexpr int64_t kTowersMax = 16;

// Counts the elements of statistics that are infinite or NaN.
//
//   inputs   int32 [statistic lines], gradient
//   outputs  int64 [1]
inline constexpr std::string_view kCheckStatisticsOp = "_CheckStatistics";

// The root of the sum of squares of all trained elements: a device's part of the norm in
// optimizer/gradient_clip.h, summed in another order.
//
//   inputs   kinds uint8 [lines], gradient
//   outputs  norm [1]; infinite where it is beyond float32
inline constexpr std::string_view kNormOfTrainedOp = "_NormOfTrained";

// Multiplies all trained elements by `factor`.
//
//   inputs   factor [1], kinds uint8 [lines], gradient
//   outputs  gradient: in the memory of that input
inline constexpr std::string_view kScaleTrainedOp = "_ScaleTrained";

}  // namespace dtf::runtime
