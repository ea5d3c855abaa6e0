#pragma once

// Runs a store's updates, and copies of its slots for checkpoints, one at a time: in place when the
// shard is small, by the runner otherwise.

#include <functional>
#include <memory>
#include <vector>

#include "common/ps/answer.h"
#include "common/ps/parameter_store.h"

namespace dtf::ps {

// Borrows: everything given to the constructor. A job that still runs on destruction is dropped
// when it ends.
// Threads: loop-thread only.
// Blocks: while a small shard is updated.
class Updater {
 public:
  Updater(ParameterStore& store, UpdateRunner& runner, OutwardCalls& calls);

  // An update is running, or waits for a copy to end.
  bool busy() const { return busy_; }
  // Calls `then` between two updates: at once when none is running.
  void whenIdle(std::function<void()> then);
  // Applies the mean of `gradients`, commits, then calls `committed`: perhaps before start()
  // returns, so let it be the caller's last statement. Not while busy().
  void start(std::vector<Gradient> gradients, std::function<void()> committed);
  // Copies all slots as they are now, then calls `copied`: perhaps before copySlots() returns. An
  // update that is started meanwhile waits. Not while an update runs, nor during another copy.
  void copySlots(std::function<void(std::vector<Buffer>)> copied);

 private:
  bool isSmall() const { return store_.elements() * sizeof(float) <= kInlineUpdateBytes; }
  void launch(std::vector<Gradient> gradients, std::function<void()> committed);

  ParameterStore& store_;
  UpdateRunner& runner_;
  OutwardCalls& calls_;
  bool busy_ = false;
  bool copying_ = false;
  std::function<void()> launch_after_copy_;          // the update that waits; null: none
  std::vector<std::function<void()>> idle_waiters_;  // at most two per worker, as its calls are
  std::shared_ptr<char> alive_ = std::make_shared<char>();  // watched by the runner's callbacks
};

}  // namespace dtf::ps
