#pragma once

// Common subexpression elimination: nodes with the same computation become one.

#include <vector>

#include "common/graph/graph.h"

namespace dtf::graph {

struct Merged {
  Graph graph;
  std::vector<NodeId> nodes;  // by the source's NodeId: its replacement
};

// Keeps the first of several nodes with equal op, attributes, device, inputs and control inputs,
// under its name. Nodes that become equal when their inputs are joined are joined, too. Never
// joined: stateful ops (op_def.h), Placeholders, since each is fed by itself, and nodes without
// outputs, since targets are named by them.
Merged mergeCommon(const Graph& graph);

}  // namespace dtf::graph
