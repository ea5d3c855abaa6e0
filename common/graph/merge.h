#pragma once

// Common subexpressions: nodes that compute the same of the same become one.

#include <vector>

#include "common/graph/graph.h"

namespace dtf::graph {

struct Merged {
  Graph graph;
  std::vector<NodeId> nodes;  // by the source's NodeId: what stands for it
};

// Of nodes with the same op, attributes, device, inputs and control inputs, the first stays, under
// its name. What is equal only after its inputs were joined is joined, too. Never joined: stateful
// ops (op_def.h), Placeholders, each of which is fed by itself, and nodes without outputs, whose
// names are what targets are.
Merged mergeCommon(const Graph& graph);

}  // namespace dtf::graph
