#pragma once

// Cuts the graph of one device at its receives and sends, and where it acts on variables and
// queues, into pieces that run without waiting; an act on a queue alone may wait.

#include <cstddef>
#include <optional>
#include <vector>

#include "common/graph/graph.h"

namespace dtf::engine {

// Nodes that can run as one program once `receives` have arrived and the segments in `after` have
// ended; then `sends` leave. Sources (Placeholder, Variable, FIFOQueue, a Const that waits for
// nothing) belong to no segment: whoever reads them has them. Value type.
struct Segment {
  std::vector<graph::NodeId> nodes;     // that compute, in the part's order; empty: passes on only
  std::optional<graph::NodeId> action;  // on a variable or a queue: all that this segment does
  std::vector<graph::NodeId> receives;  // that its nodes need and no segment in `after` awaits
  std::vector<size_t> after;            // ascending; all less than its own index
  std::vector<graph::NodeId> sends;
  std::vector<graph::Output> results;  // what other segments, sends and fetches take of it
};

// Whether a node is a source, in the words of Segment.
bool isSource(const graph::Node& node);

// Whether it is a segment by itself.
bool isAction(const graph::Node& node);

// Numbers in all the sets of receives, and of acts on queues, that the nodes of a part wait for.
inline constexpr size_t kReceiveSetsMax = 16 << 20;

// Nodes that need the same receives, and come after the same acts on queues, run together, but what
// a send needs runs first, so that it leaves as soon as it can. No segment awaits anything that one
// of its nodes doesn't need itself: wherever running node by node would get through, this does. An
// action on a variable or a queue is a segment by itself, with what comes before it and what comes
// after it in others. `fetches` are outputs of `part`.
// Errors: kBadConfig for a part whose nodes wait for so many different sets of receives that to
// tell them apart would take kReceiveSetsMax numbers.
std::vector<Segment> cutIntoSegments(const graph::Graph& part,
                                     const std::vector<graph::Output>& fetches);

}  // namespace dtf::engine
