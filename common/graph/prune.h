#pragma once

// Cuts a graph down to what a step needs.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/graph/graph.h"

namespace dtf::graph {

struct Pruned {
  Graph graph;
  // Where the requested things are in `graph`, in the order in which they were asked for.
  std::vector<std::optional<Output>> feeds;  // nullopt: nothing that is left reads this feed
  std::vector<Output> fetches;
  std::vector<NodeId> targets;
};

// Keeps the ancestors, by data and by control, of `fetches` and `targets`, and cuts above `feeds`:
// a fed tensor becomes a Placeholder, and what only it needed is gone. A fed Placeholder stays as
// it is; others are named "<node>/fed_<index>". Names, attributes, devices and creation order are
// kept. Placeholders that are needed and not fed stay: the executor refuses a step that doesn't
// feed them.
Pruned prune(const Graph& graph, std::span<const Output> feeds, std::span<const Output> fetches,
             std::span<const NodeId> targets = {});

// The tensor that a person means by "softmax/logits" (output 0) or "softmax/loss:1".
// Errors: kBadConfig naming it, with the nearest name there is.
Output findTensor(const Graph& graph, std::string_view name);

// As findTensor, for a node.
NodeId findNode(const Graph& graph, std::string_view name);

}  // namespace dtf::graph
