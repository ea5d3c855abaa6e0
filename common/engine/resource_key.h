#pragma once

// The identity of a variable or a queue of a process.

#include <compare>
#include <string>

#include "common/base/check.h"
#include "common/graph/graph.h"
#include "common/graph/queue.h"

namespace dtf::engine {

// Value type.
struct ResourceKey {
  std::string device;     // full name
  std::string container;  // its owner; empty: shared by all
  std::string name;
  auto operator<=>(const ResourceKey&) const = default;

  // The key of a placed Variable or FIFOQueue, by its shared_name, or without one by the node's
  // name.
  static ResourceKey of(const graph::Node& node) {
    DTF_CHECK_MSG(node.op == "Variable" || graph::isQueue(node), node.name);
    const auto& shared = node.attribute<std::string>("shared_name");
    return {node.device, node.attribute<std::string>("container"),
            shared.empty() ? node.name : shared};
  }

  // Returns "'jobs' on /job:ps/replica:0/task:0/device:CPU:0, in the container 'mine',".
  std::string text() const {
    return "'" + name + "' on " + device +
           (container.empty() ? "" : ", in the container '" + container + "',");
  }
};

}  // namespace dtf::engine
