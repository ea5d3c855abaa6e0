#pragma once

// tf.clip_by_global_norm, applied between computing a worker's gradients and pushing them. In
// between-graph replication every worker clips its own gradient by its own norm, before the ps take
// the mean.

#include <span>

namespace dtf::optimizer {

// Scales all gradients by one factor so that their global norm, the root of the sum of all squares,
// is at most `clip_norm`. Returns the norm before. If it is not finite, nothing is changed: the
// caller must check it. The norm is summed in the order of `gradients`: the same order gives the
// same bits.
double clipByGlobalNorm(std::span<const std::span<float>> gradients, double clip_norm);

}  // namespace dtf::optimizer
