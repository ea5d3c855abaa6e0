#pragma once

// Explicit placement: every node on one of the devices there are, from what nodes ask for, in the
// manner of TensorFlow's placer. (placer.h deals a model's variables over parameter servers.)

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/graph/device_name.h"
#include "common/graph/graph.h"
#include "common/graph/placer.h"

namespace dtf::graph {

struct DevicePlacerOptions {
  std::vector<DeviceName> devices;  // those there are, every field set, each once; at least one
  // What decides among devices that would do: on the same task as this one, of its type, of its
  // index, in this order of importance; then the order of `devices`.
  DeviceName preferred;
  // Whether a node whose device isn't there, or can't compute it, may run on another device of its
  // task. A task that isn't there is never made up for.
  bool soft = false;
  // Pairs of names: the first runs where the second does. What applies to a variable, reads or
  // assigns it, or acts on a queue, runs where that is without being told to.
  std::vector<std::pair<std::string, std::string>> colocations;
  // Where somebody wrote a node, by its name, for messages: "model.yaml:12:5".
  std::map<std::string, std::string, std::less<>> lines;
  // Whether a device has a kernel for a node. Empty: every device for every node.
  std::function<bool(const Node& node, const DeviceName& device)> can_run;
};

// A node's device constraint is a condition, field by field; what it leaves open is decided by
// `preferred`. Nodes that are colocated have one device, which meets the constraints of all of
// them. A pure function of its arguments.
// Errors: kBadConfig that names the node, its line where there is one, and the devices there are:
// for a device that isn't there or has no kernel for the op, a constraint that isn't understood,
// colocated nodes that contradict each other, a colocation with a node that isn't there, and what
// applies to, reads or assigns something else than a Variable.
Placement placeOnDevices(const Graph& graph, const DevicePlacerOptions& options);

// `graph` with each node's device as `placement` has it, in full.
Graph withDevices(const Graph& graph, const Placement& placement);

}  // namespace dtf::graph
