#pragma once

// The action of a node on a queue, for the steps of its part: prepared once.

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
  // Its outputs, and their share of the budget while they are held. Move-only.
  struct Result {
    std::vector<Tensor> outputs;
    std::vector<ByteBudget::Share> shares;
  };

  // `node`, of `part`, acts on a queue.
  QueueAct(const graph::Graph& part, const graph::Node& node);

  // Begins the act. `inputs`, all of the node's inputs but the queue, may change afterwards. `done`
  // is called as by FifoQueue, also within this call. Errors: kUnavailable without room for the new
  // elements.
  FifoQueue::Wait start(FifoQueue& queue, std::span<const std::span<const std::byte>> inputs,
                        FifoQueue::Done done) const;

  // Completes an act with the outcome `elements`.
  Result finish(FifoQueue::Elements elements) const;

  const std::string& op() const { return op_; }
  // Returns "node 'take' (QueueDequeueMany) waits for 2 elements of the queue 'jobs', which has 1
  // of at most 4", one line with long names shortened.
  std::string awaited(const FifoQueue& queue) const;

 private:
  enum class Kind : uint8_t { kEnqueue, kEnqueueMany, kDequeue, kDequeueMany, kSize, kClose };
  static Kind kindOf(const graph::Node& node);
  FifoQueue::Elements elementsOf(const FifoQueue& queue,
                                 std::span<const std::span<const std::byte>> inputs) const;

  const Kind kind_;
  const std::string op_, node_;
  const size_t count_;  // elements that it enqueues or dequeues
  const bool cancels_;  // kClose: cancels waiting enqueues
  const std::vector<graph::TensorSpec> outputs_;
};

}  // namespace dtf::engine
