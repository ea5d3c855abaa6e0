#pragma once

// Graphs as TensorFlow's GraphDef, which TensorBoard draws.

#include <functional>
#include <string>

#include "common/graph/graph.h"

namespace dtf::summary {

// Encodes every node with its op, inputs, attributes, output shapes and device. `device_of` returns
// the device of a node.
std::string encodeGraphDef(const graph::Graph& graph,
                           const std::function<std::string(graph::NodeId)>& device_of);

}  // namespace dtf::summary
