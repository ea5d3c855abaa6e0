#pragma once

// FIFO queues in a graph: what their elements are, and which nodes act on them.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/graph/graph.h"

namespace dtf::graph {

// What a FIFOQueue holds. Value type.
struct QueueSpec {
  std::vector<TensorSpec> components;  // of each element, 1 to kQueueComponentsMax
  int64_t capacity = 0;                // elements
  bool operator==(const QueueSpec&) const = default;
};

// Each is an output of every node that takes an element: what a node is costs more than its text.
inline constexpr size_t kQueueComponentsMax = 64;

// Tensors, elements times components, that one node puts in or takes, for its device is busy with
// them until it is done.
inline constexpr int64_t kQueueBatchMax = 1 << 20;

bool isQueue(const Node& node);

// Whether the node's first input is a queue that it acts on when it runs: QueueEnqueue,
// QueueEnqueueMany, QueueDequeue, QueueDequeueMany, QueueSize, QueueClose.
bool actsOnQueue(const Node& node);

// Whether it may wait for what others do to the queue: all of these but QueueSize and QueueClose.
bool mayAwaitQueue(const Node& node);

// Of a FIFOQueue, or of a node that acts on one: what an element is.
// Errors: kBadConfig that says what in `component_types` or `shapes` is wrong.
std::vector<TensorSpec> queueComponents(const Attributes& attributes);
QueueSpec queueSpec(const Node& queue);

// Checks what `def`, whose inputs are nodes of the graph, has to do with queues, before it is
// added: a node that acts on one is told what the queue's elements are, and is to have that queue
// as its first input; no other reads one.
// Errors: kBadConfig, without the node's name.
void joinQueue(const Graph& graph, NodeDef& def);

}  // namespace dtf::graph
