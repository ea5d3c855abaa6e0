#pragma once

// Checks whether an optimizer that a worker declared can work. The bounds are the YAML tables',
// which the worker may have bypassed.

#include "common/cluster/optimizer_spec.h"

namespace dtf::optimizer {

// Errors: kBadConfig naming the setting, its value and its bounds.
void validateOptimizer(const cluster::OptimizerSpec& spec);

}  // namespace dtf::optimizer
