#pragma once

// Can an optimizer that a worker declared work? The bounds are those of the YAML's tables, which
// the worker may have bypassed.

#include "common/cluster/optimizer_spec.h"

namespace dtf::ps {

// Errors: kBadConfig naming the setting, its value and its bounds.
void validateOptimizer(const cluster::OptimizerSpec& spec);

}  // namespace dtf::ps
