#pragma once

// FIFO queues in a graph: the specs of their elements, and the nodes that act on them.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/graph/graph.h"

namespace dtf::graph {

// The elements and the capacity of a FIFOQueue. Value type.
struct QueueSpec {
  std::vector<TensorSpec> components;  // of each element, 1 to kQueueComponentsMax
  int64_t capacity = 0;                // elements
  bool operator==(const QueueSpec&) const = default;
};

// Each component is an output of every node that dequeues: nodes cost more than their text.
inline constexpr size_t kQueueComponentsMax = 64;

// The largest number of tensors, elements times components, that one node enqueues or dequeues: its
// device is busy until it is done.
inline constexpr int64_t kQueueBatchMax = 1 << 20;

bool isQueue(const Node& node);

// Returns whether the node acts on the queue in its first input when it runs: QueueEnqueue,
// QueueEnqueueMany, QueueDequeue, QueueDequeueMany, QueueSize, QueueClose.
bool actsOnQueue(const Node& node);

// Returns whether it may wait for other actions on the queue: all of these except QueueSize and
// QueueClose.
bool mayAwaitQueue(const Node& node);

// Returns the components of an element, for a FIFOQueue or a node that acts on one.
// Errors: kBadConfig with the mistake in `component_types` or `shapes`.
std::vector<TensorSpec> queueComponents(const Attributes& attributes);
QueueSpec queueSpec(const Node& queue);

// Checks and completes `def`, a new node with inputs in the graph, with respect to queues. A node
// that acts on a queue must have it as its first input, and gets the queue's element specs as
// attributes; no other node may read a queue.
// Errors: kBadConfig, without the node's name.
void joinQueue(const Graph& graph, NodeDef& def);

}  // namespace dtf::graph
