#pragma once

// A graph with parameters and results that an op calls: a branch of an If, the condition or the
// body of a While (standard_control_ops.cc). It is an attribute of that op.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "common/graph/graph.h"

namespace dtf::graph {

class Builder;

// Owns: its graph.
// Threads: immutable, hence thread-safe.  Never blocks.
class Function {
 public:
  static constexpr int kDepthMax = 8;  // nesting of calls; compilation recurses
  // Limit of its nodes and the nodes of called functions, which count once per caller, as they are
  // encoded and compiled once per caller. Otherwise a few functions with shared callees could
  // expand beyond any memory.
  static constexpr uint64_t kNodesMax = 100'000;
  // Limit of all loops together: beyond it, a loop looks endless.
  static constexpr int64_t kIterationsMax = int64_t{1} << 24;

  // Makes a function. `parameters` are all of the graph's Placeholders, in the order of the call's
  // arguments. The graph has no effect and no state: no variables, no sends.
  // Errors: kBadConfig for a graph that violates this, for a result that doesn't exist, and beyond
  // kDepthMax levels, kNodesMax nodes or kIterationsMax iterations.
  static FunctionRef make(Graph graph, std::vector<NodeId> parameters, std::vector<Output> results);

  // Makes a function with parameters of these specs; `build` adds its results to the graph.
  // Errors: as make(), addNode() and `build`.
  using Build = std::function<std::vector<Output>(Builder&, std::span<const Output> parameters)>;
  static FunctionRef build(const OpCatalog& catalog, std::span<const TensorSpec> parameters,
                           const Build& build);

  const Graph& graph() const { return graph_; }
  const std::vector<NodeId>& parameters() const { return parameters_; }
  const std::vector<Output>& results() const { return results_; }
  std::vector<TensorSpec> parameterSpecs() const;
  std::vector<TensorSpec> resultSpecs() const;
  // Returns the largest total of iterations of its loops: nested loops multiply, loops side by side
  // add up; 0 without loops.
  int64_t iterations() const { return iterations_; }
  uint64_t nodes() const { return nodes_; }  // see kNodesMax

 private:
  Function(Graph graph, std::vector<NodeId> parameters, std::vector<Output> results);
  void check() const;
  void measure();

  const Graph graph_;
  const std::vector<NodeId> parameters_;
  const std::vector<Output> results_;
  int depth_ = 1;  // 1: no calls
  int64_t iterations_ = 0;
  uint64_t nodes_ = 0;
};

// Returns the nodes of all functions that `node` calls, directly or not; see Function::kNodesMax.
uint64_t calledNodes(const Node& node);

}  // namespace dtf::graph
