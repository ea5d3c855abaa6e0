#pragma once

// The second cut: what partition() made for one task, in a graph for each of the task's devices.

#include <map>
#include <string>

#include "common/graph/graph.h"

namespace dtf::graph {

// One graph per device that has something to do, by its full name, each in the part's creation
// order; nodes keep their names. What crosses becomes one _Send and one _Recv per (tensor, reading
// device), shared by all of its readers there; a control edge the same with a scalar that says
// "done", one per (node, waiting device). Keys are as partition()'s.
//
// A tensor of another task therefore comes to the task once, to the device of its first reader, and
// goes on from there. Names and keys follow from the part alone, so all who cut it agree.
//
// Errors: DTF_CHECK when a node has no device.
std::map<std::string, Graph> partitionByDevice(const Graph& part);

}  // namespace dtf::graph
