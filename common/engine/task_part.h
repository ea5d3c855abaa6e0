#pragma once

// The work of one task in each step of a plan: made by the master from a graph, and sent to the
// task once, before it is run by number.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/graph/device_name.h"
#include "common/graph/graph.h"
#include "common/tensor/tensor.h"

namespace dtf::engine {

// Owns: the graph and the folded values. Move-only.
struct TaskPart {
  // A _Send or a _Recv of the graph; its other end is in another task.
  struct Edge {
    graph::NodeId node;
    uint32_t number = 0;  // of this edge in the whole plan: the same at both ends
    TaskId peer;          // the task with the other end
    bool operator==(const Edge&) const = default;
  };

  TaskId task;
  graph::Graph graph;                    // its nodes have full devices, all of `task`
  std::vector<graph::Output> fetches;    // the results of each step
  std::vector<std::string> feeds;        // Placeholders fed in each step, in this order
  std::map<std::string, Tensor> folded;  // Placeholders with the same value in every step
  std::vector<Edge> edges;               // all edges of the graph, in its order
  uint32_t edges_total = 0;              // in the plan: the task's own edges are numbered from here
};

// The identity of a part: XXH3-64 over all of its fields. A decoded part with the same digest is
// the same part.
uint64_t digestOf(const TaskPart& part);

// Checks a part from another process before it is compiled: complete, edges and feeds listed once
// each, on `devices` of `self`.
// Errors: kBadConfig with the node.
void checkTaskPart(const TaskPart& part, TaskId self,
                   const std::vector<graph::DeviceName>& devices);

}  // namespace dtf::engine
