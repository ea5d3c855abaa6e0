#pragma once

// tf.clip_by_global_norm between computing a worker's gradients and pushing them. Between-graph
// replication: every worker clips its own gradient, by its own norm, before the ps take the mean.

#include <span>

namespace dtf::train {

// Scales all gradients together so that their global norm, the root of the sum of all squares, is
// at most `clip_norm`; leaves them as they are when it is already. Returns the norm before. The
// order of `gradients` decides how it is summed: the same order, the same bits. Nothing is changed
// when the norm isn't finite: the caller must look.
double clipByGlobalNorm(std::span<const std::span<float>> gradients, double clip_norm);

}  // namespace dtf::train
