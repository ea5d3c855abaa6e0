#pragma once

// Runs updates on the threads that compute the step, in a worker that holds the parameters itself.
// These threads are idle meanwhile, and an update is bound by memory, of which one core reads only
// a part.

#include <functional>
#include <memory>
#include <thread>

#include "common/optimizer/parameter_store.h"
#include "common/runtime/compute_pool.h"

namespace dtf::train {

// Borrows: the pool, whose threads must not compute while the thread that made this exchanges
// gradients.
// Threads: start() on any, one at a time. On another thread than the one that made this, it runs
// the job on that thread alone: for a checkpoint that copies the slots while a step is computed.
// Blocks: start(), until the update is done.
class PooledUpdates final : public optimizer::UpdateRunner {
 public:
  explicit PooledUpdates(runtime::ComputePool& pool) : pool_(pool) {}
  void start(std::shared_ptr<optimizer::UpdateJob> job, std::function<void()> done) override;

 private:
  runtime::ComputePool& pool_;
  const std::thread::id owner_ = std::this_thread::get_id();
};

}  // namespace dtf::train
