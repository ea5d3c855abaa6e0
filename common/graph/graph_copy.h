#pragma once

// What passes over a graph share: a copy that grows node by node, in the source's order, while the
// pass leaves out, replaces and joins nodes.

#include <vector>

#include "common/graph/graph.h"

namespace dtf::graph {

// Owns: the copy, until take().
// Borrows: `source`, which must outlive it.
// Threads: thread-compatible.
// Errors: those of Graph::addNode. DTF_CHECKs that whatever a node reads has been copied before it.
class GraphCopy {
 public:
  explicit GraphCopy(const Graph& source)
      : source_(source), copy_(source.catalog()), nodes_(source.nodes().size()) {}

  // `node` of the source as it is to be added: inputs and control inputs are those of the copy.
  NodeDef mapped(const Node& node) const;

  // Adds `def`, which stands for all outputs of `node` from now on.
  NodeId add(NodeId node, NodeDef def);
  NodeId add(const Node& node) { return add(node.id, mapped(node)); }

  // Adds `def`, whose output 0 stands for this single output of the source.
  NodeId addFor(const Output& output, NodeDef def);

  // `copied`, a node of the copy, stands for `node`, too.
  void join(NodeId node, NodeId copied);

  // Whether something stands for it.
  bool has(const Output& output) const;
  Output map(const Output& output) const;
  NodeId map(NodeId node) const;
  const Graph& copy() const { return copy_; }
  // By the source's NodeId; -1: not copied.
  const std::vector<NodeId>& nodes() const { return nodes_; }
  Graph take() { return std::move(copy_); }

 private:
  const Graph& source_;
  Graph copy_;
  std::vector<NodeId> nodes_;          // by the source's NodeId; -1: not copied
  std::map<Output, Output> replaced_;  // where not the whole node stands for the output
};

}  // namespace dtf::graph
