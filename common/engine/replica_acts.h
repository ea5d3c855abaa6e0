#pragma once

// The acts of synchronous replicas (graph/standard_sync_ops.cc): tickets, gradients that wait
// beside their variable, the arrival at the barrier of the global step, and the step itself.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/engine/host_act.h"
#include "common/engine/queue_act.h"
#include "common/engine/replica_barrier.h"
#include "common/engine/variable.h"
#include "common/graph/graph.h"

namespace dtf::engine {

// Returns whether makeReplicaAct() makes the node's act: all of them but the two that may wait.
bool isReplicaAct(const graph::Node& node);
std::unique_ptr<HostAct> makeReplicaAct(const graph::Graph& part, const graph::Node& node,
                                        runtime::ComputePool* pool = nullptr);

// SyncReplicasArrive and SyncReplicasPause, which may wait: prepared once, as QueueAct.
// Threads: immutable after construction; start() in the device's thread.
// Blocks: never.
class ArriveAct {
 public:
  explicit ArriveAct(const graph::Node& node);

  // `inputs`: the ticket and the local steps. `done` is called as by ReplicaBarrier, also within
  // this call.
  Awaited::Wait start(Variable& global_step, std::span<const std::span<const std::byte>> inputs,
                      ReplicaBarrier::Done done) const;
  QueueAct::Result finish(FifoQueue::Elements elements) const;

  const std::string& op() const { return op_; }
  // Returns "node 'sync/arrive' (SyncReplicasArrive) waits: step 7 of 'global_step' has 1 of 2
  // gradients; missing: rank 1".
  std::string awaited(Variable& global_step) const;

 private:
  const std::string op_, node_;
  const bool is_pause_;
  // The attributes of an arrival:
  int64_t rank_ = 0, replicas_to_aggregate_ = 0, total_num_replicas_ = 0;
  std::string variables_;
};

}  // namespace dtf::engine
