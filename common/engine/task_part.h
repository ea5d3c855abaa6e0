#pragma once

// What one task does in each step of a plan: what the master makes of a graph for each task, and
// what the task is told once, before it is only told to run it.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/graph/device_name.h"
#include "common/graph/graph.h"
#include "common/tensor/tensor.h"

namespace dtf::engine {

// Owns: the graph and the values of what was folded. Move-only.
struct TaskPart {
  // A _Send or a _Recv of the graph, whose other end is another task's.
  struct Edge {
    graph::NodeId node;
    uint32_t number = 0;  // of this edge in all of the plan: the same at both ends
    TaskId peer;          // that has the other end
    bool operator==(const Edge&) const = default;
  };

  TaskId task;
  graph::Graph graph;                    // its nodes have their devices in full, all of `task`
  std::vector<graph::Output> fetches;    // what each step answers with
  std::vector<std::string> feeds;        // Placeholders that each step is given, in this order
  std::map<std::string, Tensor> folded;  // those that have the same value in every step
  std::vector<Edge> edges;               // all of the graph's, in the graph's order
  uint32_t edges_total = 0;              // of the plan: the numbers from it on are the task's own
};

// The identity of a part: XXH3-64 over all that it says. Whoever decoded a part and finds the same
// has the same part.
uint64_t digestOf(const TaskPart& part);

// What a part that came from somebody else must be like before it is compiled: complete, its edges
// and feeds told once each, on `devices` of `self`.
// Errors: kBadConfig that names the node.
void checkTaskPart(const TaskPart& part, TaskId self,
                   const std::vector<graph::DeviceName>& devices);

}  // namespace dtf::engine
