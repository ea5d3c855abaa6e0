#pragma once

// A graph as TensorFlow's GraphDef, which TensorBoard draws.

#include <functional>
#include <string>

#include "common/graph/graph.h"

namespace dtf::summary {

// Every node with its op, inputs, attributes, output shapes and device. `device_of`: where a node
// was placed.
std::string encodeGraphDef(const graph::Graph& graph,
                           const std::function<std::string(graph::NodeId)>& device_of);

}  // namespace dtf::summary
