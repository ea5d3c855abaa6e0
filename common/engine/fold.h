#pragma once

// Constant folding: values that are the same in every step are computed once, when the step is
// made.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/graph/graph.h"
#include "common/runtime/device.h"
#include "common/runtime/kernel.h"
#include "common/tensor/tensor.h"

namespace dtf::engine {

// TensorFlow's bound: larger values are cheaper to compute than to keep and to send.
inline constexpr uint64_t kFoldedBytesMax = 10 << 20;

struct Folded {
  graph::Graph graph;
  std::vector<graph::Output> fetches;  // in the requested order
  std::vector<graph::NodeId> targets;
  // Replaced tensors with unequal elements: the Placeholder of this name is always fed with this
  // value.
  std::map<std::string, Tensor> values;
};

// Replaces values that follow from constants alone: by a Const if all elements are equal, else by a
// Placeholder with a value in `values`. Names, devices and order stay; unused constants are
// removed. Never folded: stateful ops, branches and loops, nodes with control inputs, tensors above
// kFoldedBytesMax, and ops without a CPU kernel in `kernels`.
// `device` is a CPU, which computes in the calling thread.
// Errors: of the kernels: a failure in each step is reported here.
Folded foldConstants(const graph::Graph& graph, std::span<const graph::Output> fetches,
                     std::span<const graph::NodeId> targets, runtime::Device& device,
                     const runtime::KernelTable& kernels);

}  // namespace dtf::engine
