#pragma once

// Lowers a graph to the list of operations that a device runs: only the needed ones, in order,
// without operations that cost nothing at run time.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/graph/graph.h"
#include "common/runtime/kernel.h"
#include "common/tensor/tensor.h"

namespace dtf::runtime {

// A tensor that the caller binds.
struct BoundTensor {
  std::string name;  // of the placeholder or the variable
  graph::Output tensor;
  graph::TensorSpec spec;
};

// A tensor that is known at compile time.
struct Constant {
  graph::TensorSpec spec;
  double value = 0;                  // of every element
  const Tensor* elements = nullptr;  // if set, used instead of `value`; borrowed
};

using KnownValues = std::map<std::string, Tensor>;  // by Placeholder

// Tensors are named by the graph's outputs. Reshape and Identity are removed: operations name the
// tensor behind them, and input_specs hold the shape they read. Value type.
struct LoweredStep {
  std::vector<Operation> operations;  // in topological order
  std::vector<BoundTensor> inputs;  // all Placeholders of the graph, read or not, except known ones
  std::vector<BoundTensor> parameters;  // _Pull and Variable
  // The inputs of pushes (_Push, ApplyGradient), by variable. For a sparse one (_PushSparse,
  // ApplySparseGradient) the gradient of the looked-up rows, one row for each index.
  std::vector<BoundTensor> gradients;
  std::map<graph::Output, Constant> constants;
  std::vector<BoundTensor> fetches;  // in the requested order
};

// Prunes the graph to the nodes needed by `fetches` and its pushes (graph/prune.h), and lowers
// those. Outputs in the step belong to the pruned graph: only names lead back to `graph`.
// Placeholders in `known` become constants.
// Errors: kBadConfig with the node's name for ops that a compiled step can't hold (_Send, _Recv,
// ops that read or assign a variable when they run), and for a variable that is pushed twice.
LoweredStep lower(const graph::Graph& graph, std::span<const graph::Output> fetches,
                  const KnownValues& known = {});

// Sorts operations so that each comes after the producers of its inputs; otherwise they keep their
// order.
void sortTopologically(std::vector<Operation>& operations);

}  // namespace dtf::runtime
