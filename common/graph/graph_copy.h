#pragma once

// The tool of all passes over a graph: a copy that grows node by node in the source's order, while
// the pass omits, replaces and joins nodes.

#include <vector>

#include "common/graph/graph.h"

namespace dtf::graph {

// Owns: the copy, until take().
// Borrows: `source`, which must outlive it.
// Threads: thread-compatible.
// Errors: as Graph::addNode. DTF_CHECKs that the inputs of a node were copied before it.
class GraphCopy {
 public:
  explicit GraphCopy(const Graph& source)
      : source_(source), copy_(source.catalog()), nodes_(source.nodes().size()) {}

  // Returns the definition of `node` of the source with inputs and control inputs of the copy.
  NodeDef mapped(const Node& node) const;

  // Adds `def`, which replaces all outputs of `node` from now on.
  NodeId add(NodeId node, NodeDef def);
  NodeId add(const Node& node) { return add(node.id, mapped(node)); }

  // Adds `def`; its output 0 replaces this single output of the source.
  NodeId addFor(const Output& output, NodeDef def);

  // Lets `copied`, a node of the copy, replace `node`, too.
  void join(NodeId node, NodeId copied);

  // Returns whether the copy has this output or a replacement.
  bool has(const Output& output) const;
  Output map(const Output& output) const;
  NodeId map(NodeId node) const;
  const Graph& copy() const { return copy_; }
  // By the source's NodeId; -1 if not copied.
  const std::vector<NodeId>& nodes() const { return nodes_; }
  Graph take() { return std::move(copy_); }

 private:
  const Graph& source_;
  Graph copy_;
  std::vector<NodeId> nodes_;          // by the source's NodeId; -1 if not copied
  std::map<Output, Output> replaced_;  // replacements of single outputs
};

}  // namespace dtf::graph
