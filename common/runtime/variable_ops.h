#pragma once

// What a device does with the variables that it keeps from step to step (train/device_arena.h), as
// ops that no graph has: the arrays are arenas as ps/parameter_layout.h has them, all variables of
// a worker one behind the other, or whole lines of one, so that one launch is enough for all of
// them. A device without these kernels keeps no variables.

#include <cstdint>
#include <string_view>

namespace dtf::runtime {

// Elements; each variable begins with a line.
inline constexpr int64_t kArenaLine = 16;

// An update in place, by the formulae of ps/optimizer.h, bit by bit.
//
//   inputs   learning rate [1] (of this update: ps::UpdateConstants::learning_rate), kinds uint8
//            [lines], rates [statistics], gradient, parameters, the optimizer's slots, moving
//            averages where they are kept
//   outputs  parameters, slots, moving averages: in the memory of those inputs
//
// A line's kind is 0 where it is trained; else it is of a statistic, which moves towards what lies
// in place of its gradient: by rates[kind - 1], ps::MovingRange::one_minus_momentum. Attributes:
// `kind`, a cluster::OptimizerSpec::Kind (whose numbers are part of the plug-in boundary: others
// are another DTF_DEVICE_PLUGIN_VERSION); `averages` (bool); the other constants of
// ps::UpdateConstants, by their names there.
inline constexpr std::string_view kApplyOptimizerOp = "_ApplyOptimizer";
inline constexpr int64_t kStatisticKindsMax = 255;

// Of gradients of as many towers: their sum in this order, times `share` (attribute): as
// train/tower_group.h takes the mean.
//
//   inputs   one array for each tower, kTowersMax at most
//   outputs  one: it may be in the memory of any input
inline constexpr std::string_view kMeanOfTowersOp = "_MeanOfTowers";
inline constexpr int64_t kTowersMax = 16;

// How many elements of statistics are infinite or no numbers.
//
//   inputs   int32 [statistic lines], gradient
//   outputs  int64 [1]
inline constexpr std::string_view kCheckStatisticsOp = "_CheckStatistics";

// The root of the sum of squares of all that is trained: a device's part of what
// train/gradient_clip.h takes; another order of its sum.
//
//   inputs   kinds uint8 [lines], gradient
//   outputs  norm [1]; infinite where it is beyond float32
inline constexpr std::string_view kNormOfTrainedOp = "_NormOfTrained";

// Times `factor`, what is trained.
//
//   inputs   factor [1], kinds uint8 [lines], gradient
//   outputs  gradient: in the memory of that input
inline constexpr std::string_view kScaleTrainedOp = "_ScaleTrained";

}  // namespace dtf::runtime
