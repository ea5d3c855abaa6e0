#pragma once

// Nodes that the engine computes itself, in the place of a kernel: the updates of optimizers,
// initial values, counters, clipping, synchronous replicas. They use host memory, whatever their
// device is.

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "common/engine/variable.h"
#include "common/graph/graph.h"
#include "common/runtime/compute_pool.h"
#include "common/tensor/tensor.h"

namespace dtf::engine {

// One node, prepared once.
// Owns: its outputs.
// Borrows: nothing.
// Threads: thread-compatible; run() in the device's thread.
// Blocks: computes.
// Errors: run(): kBadConfig and kTrainingFailed with the node; kUnavailable if initial values are
// drawn while a StopScope of the thread is stopped; as Variable::change(). No variable has changed
// then.
class HostAct {
 public:
  virtual ~HostAct() = default;

  // `variables`: of graph::variablesOf(); `inputs`: the node's other inputs.
  virtual void run(std::span<Variable* const> variables,
                   std::span<const std::span<const std::byte>> inputs) = 0;
  // An output of the last run.
  std::span<const std::byte> output(size_t i) const {
    return {outputs_.at(i).data(), outputs_.at(i).bytes()};
  }

 protected:
  explicit HostAct(const graph::Node& node);

  std::vector<Tensor> outputs_;
};

// Returns whether the engine computes the node.
bool isHostAct(const graph::Node& node);

// `node`, of `part`, is a host act. `pool`: the threads of its device, idle while it runs; null: it
// has one. Borrows: the pool.
// Errors: kBadConfig with the node for attributes that don't work.
std::unique_ptr<HostAct> makeHostAct(const graph::Graph& part, const graph::Node& node,
                                     runtime::ComputePool* pool = nullptr);

}  // namespace dtf::engine
