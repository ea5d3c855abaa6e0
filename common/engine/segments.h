#pragma once

// Cuts the graph of one device at its receives and sends, and at actions on variables and queues,
// into pieces that run without waiting; only acts on queues may wait.

#include <cstddef>
#include <optional>
#include <vector>

#include "common/graph/graph.h"

namespace dtf::engine {

// Nodes that can run as one program once `receives` have arrived and the segments in `after` have
// ended; then `sends` are sent. Sources (Placeholder, Variable, FIFOQueue, a Const without control
// inputs) belong to no segment: their readers have them. Value type.
struct Segment {
  std::vector<graph::NodeId> nodes;  // computing nodes, in the part's order; empty: only passes on
  // On a variable or a queue, or computed by the engine (host_act.h): the segment's only node.
  std::optional<graph::NodeId> action;
  std::vector<graph::NodeId> receives;  // needed by its nodes, not awaited by a segment in `after`
  std::vector<size_t> after;            // ascending; all less than its own index
  std::vector<graph::NodeId> sends;
  std::vector<graph::Output> results;  // its outputs read by other segments, sends and fetches
};

// Returns whether a node is a source, as defined at Segment.
bool isSource(const graph::Node& node);

// Returns whether it forms a segment by itself.
bool isAction(const graph::Node& node);

// Bound on the total size of all distinct sets of receives and acts on queues that nodes of a part
// wait for.
inline constexpr size_t kReceiveSetsMax = 16 << 20;

// Nodes that need the same receives, and come after the same acts on queues, run together; nodes
// needed by a send run first, so that it is sent as early as possible. A segment only awaits events
// that all of its nodes need: wherever running node by node would succeed, this does. An action on
// a variable or a queue is a segment by itself; nodes before and after it are in others. `fetches`
// are outputs of `part`.
// Errors: kBadConfig for a part with so many different sets of receives that they exceed
// kReceiveSetsMax numbers.
std::vector<Segment> cutIntoSegments(const graph::Graph& part,
                                     const std::vector<graph::Output>& fetches);

}  // namespace dtf::engine
