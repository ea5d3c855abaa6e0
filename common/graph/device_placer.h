#pragma once

// Explicit placement: assigns every node to one of the given devices by the nodes' constraints, in
// the manner of TensorFlow's placer. (placer.h distributes a model's variables over parameter
// servers.)

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
  std::vector<DeviceName> devices;  // the available devices: complete, distinct, at least one
  // Ranks suitable devices: same task as this one, then same type, then same index; then the order
  // of `devices`.
  DeviceName preferred;
  // Whether a node may run on another device of its task if its own device is missing or can't
  // compute it. A missing task is never replaced.
  bool soft = false;
  // Pairs of names: the first node runs where the second does. Nodes that update, read or assign a
  // variable, or act on a queue, are colocated with it automatically.
  std::vector<std::pair<std::string, std::string>> colocations;
  // The place of a node in a file, by its name, for messages: "model.yaml:12:5".
  std::map<std::string, std::string, std::less<>> lines;
  // Whether a device has a kernel for a node. Empty: every device has all kernels.
  std::function<bool(const Node& node, const DeviceName& device)> can_run;
};

// Places all nodes. A node's device constraint is a condition, field by field; `preferred` decides
// the open fields. Colocated nodes share one device, which meets the constraints of all of them. A
// pure function of its arguments.
// Errors: kBadConfig with the node, its line if known, and the available devices: for a missing
// device, a device without a kernel for the op, a malformed constraint, contradictory or unknown
// colocations, and an update, read or assignment of anything but a Variable.
Placement placeOnDevices(const Graph& graph, const DevicePlacerOptions& options);

// Returns `graph` with each node's full device from `placement`.
Graph withDevices(const Graph& graph, const Placement& placement);

}  // namespace dtf::graph
