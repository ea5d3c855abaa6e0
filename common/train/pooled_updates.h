#pragma once

// Updates on the threads that compute the step, where a worker holds the parameters itself: they
// have nothing to do meanwhile, and an update is bound by memory, of which one core reads only a
// part.

#include <functional>
#include <memory>
#include <thread>

#include "common/ps/parameter_store.h"
#include "common/runtime/compute_pool.h"

namespace dtf::train {

// Borrows: the pool, whose threads must not compute while the thread that made this exchanges
// gradients.
// Threads: start() on any, one at a time. Called on another thread than the one that made this (by
// a checkpoint that copies the slots while a step is computed), it runs the job there.
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
