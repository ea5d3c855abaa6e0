#pragma once

// The memory that a training step needs beside the variables.

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

// Sums up the tensors that the forward pass computes and the gradients read: they all exist when
// the backward pass begins. A lower bound of a step's memory, whichever ops share a kernel. `model`
// is a training graph.
KeptTensors keptTensors(const ModelGraph& model);

}  // namespace dtf::model
