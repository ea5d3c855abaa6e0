#pragma once

// What a node does to a queue, as the steps of its part do it: prepared once.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/byte_budget.h"
#include "common/engine/fifo_queue.h"
#include "common/graph/graph.h"
#include "common/tensor/tensor.h"

namespace dtf::engine {

// Threads: immutable after construction.
// Blocks: never.
class QueueAct {
 public:
  // What its outputs are, for as long as it is held; the bytes of it are counted. Move-only.
  struct Result {
    std::vector<Tensor> outputs;
    std::vector<ByteBudget::Share> shares;
  };

  // `node`, of `part`, acts on a queue.
  QueueAct(const graph::Graph& part, const graph::Node& node);

  // Begins it. `inputs`, the node's but its queue, may change when this returns. `done` is called
  // as FifoQueue says, also within this. Errors: kUnavailable without room for what it puts in.
  FifoQueue::Wait start(FifoQueue& queue, std::span<const std::span<const std::byte>> inputs,
                        FifoQueue::Done done) const;

  // Of an act whose outcome is `elements`.
  Result finish(FifoQueue::Elements elements) const;

  const std::string& op() const { return op_; }
  // "node 'take' (QueueDequeueMany) waits for 2 elements of the queue 'jobs', which has 1 of at
  // most 4", long names clipped: a line, whatever a client calls them.
  std::string awaited(const FifoQueue& queue) const;

 private:
  enum class Kind : uint8_t { kEnqueue, kEnqueueMany, kDequeue, kDequeueMany, kSize, kClose };
  static Kind kindOf(const graph::Node& node);
  FifoQueue::Elements elementsOf(const FifoQueue& queue,
                                 std::span<const std::span<const std::byte>> inputs) const;

  const Kind kind_;
  const std::string op_, node_;
  const size_t count_;  // elements that it puts in or takes
  const bool cancels_;  // kClose: who waits for room
  const std::vector<graph::TensorSpec> outputs_;
};

}  // namespace dtf::engine
