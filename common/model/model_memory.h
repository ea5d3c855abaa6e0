#pragma once

// What a training step must keep in memory beside the variables.

#include <cstdint>
#include <string>

#include "common/model/model_graph.h"

namespace dtf::model {

// Value type.
struct KeptTensors {
  uint64_t bytes = 0;
  std::string largest_layer;  // the path of the innermost layer that keeps most; empty: none does
  uint64_t largest_bytes = 0;
};

// What the forward pass computes and the gradients read: all of it exists when the one ends and the
// other begins. A lower bound of what a step takes, whichever operations one kernel joins.
// `model` is a training graph.
KeptTensors keptTensors(const ModelGraph& model);

}  // namespace dtf::model
