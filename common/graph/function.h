#pragma once

// A graph with parameters and results that an op calls: a branch of an If, the condition and the
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
  static constexpr int kDepthMax = 8;  // functions called by functions; who compiles them recurses
  // Of it and of what it calls, each counted once for each of its callers: so often a function is
  // encoded and compiled. A few that share what they call could else stand for more than any memory
  // has.
  static constexpr uint64_t kNodesMax = 100'000;
  // Of all loops in it: nobody could tell more from a loop without end.
  static constexpr int64_t kIterationsMax = int64_t{1} << 24;

  // `parameters` are all of the graph's Placeholders, in the order of what the function is called
  // with. Nothing in it has an effect or a state: no variables, no sends.
  // Errors: kBadConfig, saying which of this isn't so, for a result that doesn't exist, and for
  // more than kDepthMax levels, kNodesMax nodes or kIterationsMax iterations.
  static FunctionRef make(Graph graph, std::vector<NodeId> parameters, std::vector<Output> results);

  // One whose parameters are of these specs and whose results `build` adds to its graph.
  // Errors: those of make(), of addNode(), and of `build`.
  using Build = std::function<std::vector<Output>(Builder&, std::span<const Output> parameters)>;
  static FunctionRef build(const OpCatalog& catalog, std::span<const TensorSpec> parameters,
                           const Build& build);

  const Graph& graph() const { return graph_; }
  const std::vector<NodeId>& parameters() const { return parameters_; }
  const std::vector<Output>& results() const { return results_; }
  std::vector<TensorSpec> parameterSpecs() const;
  std::vector<TensorSpec> resultSpecs() const;
  // How often the bodies of its loops run at most, those within loops multiplied, those side by
  // side added; 0: it has none.
  int64_t iterations() const { return iterations_; }
  uint64_t nodes() const { return nodes_; }  // see kNodesMax

 private:
  Function(Graph graph, std::vector<NodeId> parameters, std::vector<Output> results);
  void check() const;
  void measure();

  const Graph graph_;
  const std::vector<NodeId> parameters_;
  const std::vector<Output> results_;
  int depth_ = 1;  // 1: calls none
  int64_t iterations_ = 0;
  uint64_t nodes_ = 0;
};

// Of the functions that `node` calls, and those that they call; see Function::kNodesMax.
uint64_t calledNodes(const Node& node);

}  // namespace dtf::graph
