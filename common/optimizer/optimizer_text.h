#pragma once

// An optimizer as one line of text, for the nodes of a graph: its name, then its settings with the
// names that a job's file has, such as
//
//   adam learning_rate=0.001 beta1=0.9
//   momentum learning_rate=0.1 schedule=exponential decay_steps=1000 decay_rate=0.9 staircase=true

#include <cstddef>
#include <string>
#include <string_view>

#include "common/cluster/optimizer_spec.h"

namespace dtf::optimizer {

// The most bytes of such a text, as it may come from another process.
inline constexpr size_t kOptimizerTextMax = 4096;

// Returns the text with every setting. Its numbers are exact.
std::string encodeOptimizer(const cluster::OptimizerSpec& spec);

// Reads the text. Settings that are left out have the defaults of a job's file.
// Errors: kBadConfig for an unknown name, with the nearest; for a value that is no number or out of
// its bounds; for a setting that has no default and is missing (adamw's weight_decay).
cluster::OptimizerSpec decodeOptimizer(std::string_view text);

}  // namespace dtf::optimizer
