#pragma once

// Reduces a graph to the nodes that a step needs.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/graph/graph.h"

namespace dtf::graph {

struct Pruned {
  Graph graph;
  // The requested outputs and targets in `graph`, in the order of the request.
  std::vector<std::optional<Output>> feeds;  // nullopt: no remaining node reads this feed
  std::vector<Output> fetches;
  std::vector<NodeId> targets;
};

// Keeps the ancestors, by data and by control, of `fetches` and `targets`, and cuts at `feeds`: a
// fed tensor becomes a Placeholder, and nodes needed only for it are removed. A fed Placeholder
// stays unchanged; others are named "<node>/fed_<index>". Names, attributes, devices and creation
// order are kept. Needed Placeholders that are not fed stay: the executor rejects a step that
// doesn't feed them.
Pruned prune(const Graph& graph, std::span<const Output> feeds, std::span<const Output> fetches,
             std::span<const NodeId> targets = {});

// Returns the tensor named "softmax/logits" (output 0) or "softmax/loss:1".
// Errors: kBadConfig with the name, and the nearest existing name.
Output findTensor(const Graph& graph, std::string_view name);

// Like findTensor(), for a node.
NodeId findNode(const Graph& graph, std::string_view name);

}  // namespace dtf::graph
