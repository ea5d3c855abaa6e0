#pragma once

// Learning-rate schedules: TensorFlow 1's exponential_decay, polynomial_decay and cosine_decay, and
// a linear warm-up before them.

#include <cstdint>

#include "common/cluster/optimizer_spec.h"

namespace dtf::optimizer {

// Returns the rate of update number `update`, counted from 0 like TensorFlow's global_step. With r
// = learning_rate, n = decay_steps and t = update - warmup_steps:
//   warm-up (t < 0)  r (update + 1) / warmup_steps: not 0 at the first update, which would be lost
//   constant         r
//   exponential      r decay_rate^(t/n); staircase: floor(t/n)
//   polynomial       (r - end)(1 - min(t, n)/n)^power + end; cycle: n grows to the next multiple of
//                    itself instead
//   cosine           r ((1 - alpha)(1 + cos(pi min(t, n)/n))/2 + alpha)
// pow and cos are the C library's: a rate may differ in its last bit between two C libraries.
double learningRate(const cluster::OptimizerSpec& spec, uint64_t update);

}  // namespace dtf::optimizer
