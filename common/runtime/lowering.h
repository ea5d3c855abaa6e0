#pragma once

// From a graph to the list of operations that a device runs: only what is needed, in order, with
// everything that costs nothing at run time taken out.

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
  const Tensor* elements = nullptr;  // set: these, in place of `value`; borrowed
};

using KnownValues = std::map<std::string, Tensor>;  // by Placeholder

// Tensors are named by the graph's outputs. Reshape and Identity are gone: operations name the
// tensor behind them, and input_specs say with which shape they see it. Value type.
struct LoweredStep {
  std::vector<Operation> operations;  // in topological order
  std::vector<BoundTensor> inputs;  // Placeholder: all of the graph's, read or not, but known ones
  std::vector<BoundTensor> parameters;  // _Pull and Variable
  // What pushes (_Push, ApplyGradient) take, by variable. Of a sparse one (_PushSparse,
  // ApplySparseGradient) the gradient of what was looked up, one row for each index.
  std::vector<BoundTensor> gradients;
  std::map<graph::Output, Constant> constants;
  std::vector<BoundTensor> fetches;  // in the order asked for
};

// Prunes the graph to what `fetches` and its pushes need (graph/prune.h), and lowers that. The
// outputs in the step are those of the pruned graph: names alone lead back to `graph`. Placeholders
// in `known` are constants.
// Errors: kBadConfig, naming the node, for ops that a compiled step can't hold (_Send, _Recv, what
// reads or assigns a variable when it runs), and a variable that is pushed twice.
LoweredStep lower(const graph::Graph& graph, std::span<const graph::Output> fetches,
                  const KnownValues& known = {});

// Sorts operations so that each comes after those whose outputs it reads; otherwise they keep their
// order.
void sortTopologically(std::vector<Operation>& operations);

}  // namespace dtf::runtime
