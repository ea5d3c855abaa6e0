#pragma once

// Updates on the threads that compute the step: where a worker holds the parameters itself, those have
// nothing to do meanwhile, and a large model's update takes longer than one core's share of the memory.

#include <functional>
#include <memory>
#include <thread>

#include "common/ps/parameter_store.h"
#include "common/runtime/compute_pool.h"

namespace dtf::train {

// Borrows: the pool, whose threads must not compute while the thread that made this exchanges gradients.
// Threads: start() on any, one at a time. On another thread than the one that made this the job runs in
// place, as of a checkpoint that copies the slots while a step is computed.
// Blocks: computes.
class PooledUpdates final : public ps::UpdateRunner {
 public:
  explicit PooledUpdates(runtime::ComputePool& pool) : pool_(pool) {}
  void start(std::shared_ptr<ps::UpdateJob> job, std::function<void()> done) override;

 private:
  runtime::ComputePool& pool_;
  const std::thread::id owner_ = std::this_thread::get_id();
};

}  // namespace dtf::train
