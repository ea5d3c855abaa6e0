#pragma once

// The second cut: splits one task's part of partition() by the task's devices.

#include <map>
#include <string>

#include "common/graph/graph.h"

namespace dtf::graph {

// Returns one graph per device with nodes, by the device's full name. Each graph is in the part's
// creation order; nodes keep their names. A tensor that crosses devices becomes one _Send and one
// _Recv per (tensor, reading device), shared by all of its readers there. A control edge becomes
// the same with a scalar "done", one per (node, waiting device). Keys are formed as in partition().
// //
// A tensor of another task therefore arrives once at the task, on the device of its first reader,
// and goes on from there. Names and keys follow from the part alone, so every process that cuts it
// gets the same result.
// //
// Errors: DTF_CHECK if a node has no device.
std::map<std::string, Graph> partitionByDevice(const Graph& part);

}  // namespace dtf::graph
