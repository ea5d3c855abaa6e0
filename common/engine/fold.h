#pragma once

// Constant folding: what is the same in every step is computed once, when the step is made.

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

// TensorFlow's bound: what is larger is cheaper to compute than to keep and to send.
inline constexpr uint64_t kFoldedBytesMax = 10 << 20;

struct Folded {
  graph::Graph graph;
  std::vector<graph::Output> fetches;  // in the order in which they were asked for
  std::vector<graph::NodeId> targets;
  // What stands for a folded tensor whose elements differ: the Placeholder of this name is always
  // fed with this value.
  std::map<std::string, Tensor> values;
};

// Replaces what follows from constants alone: by a Const where all elements are alike, as a Const
// can say no more, else by a Placeholder whose value is in `values`. Names, devices and order stay;
// constants that nothing reads any more are gone. Never folded: stateful ops, branches and loops,
// nodes that wait for others, tensors above kFoldedBytesMax, and ops without a CPU kernel in
// `kernels`.
// `device` is a CPU's, and computes in the calling thread.
// Errors: those of the kernels: what would fail in each step fails here.
Folded foldConstants(const graph::Graph& graph, std::span<const graph::Output> fetches,
                     std::span<const graph::NodeId> targets, runtime::Device& device,
                     const runtime::KernelTable& kernels);

}  // namespace dtf::engine
