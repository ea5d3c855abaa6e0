#pragma once

// Runs a store's updates, and copies of its slots for checkpoints, one at a time: in place when the
// shard is small, by the runner otherwise. With a replica an update counts when that has it, too.

#include <functional>
#include <memory>
#include <vector>

#include "common/ps/answer.h"
#include "common/ps/parameter_store.h"
#include "common/ps/replicator.h"

namespace dtf::ps {

// Borrows: everything given to the constructor. A job that still runs on destruction is dropped
// when it ends.
// Threads: loop-thread only.
// Blocks: while a small shard is updated, or one on a device is asked to; likewise while its slots
// are copied.
// Errors: of start() and copySlots() those of the device, where a shard is on one.
class Updater {
 public:
  // `replicator`: null where no replica is kept.
  Updater(ParameterStore& store, UpdateRunner& runner, OutwardCalls& calls,
          Replicator* replicator = nullptr);

  // An update is running, or waits for a copy or a replica.
  bool busy() const { return busy_; }
  // Calls `then` between two updates: at once when none is running.
  void whenIdle(std::function<void()> then);
  // Applies the mean of `gradients`, commits, then calls `committed`: perhaps before start()
  // returns, so let it be the caller's last statement. Not while busy().
  void start(std::vector<Gradient> gradients, UpdateNote note, std::function<void()> committed);
  // Copies all slots as they are now, then calls `copied`: perhaps before copySlots() returns. An
  // update that is started meanwhile waits. Not while an update runs, nor during another copy.
  void copySlots(std::function<void(std::vector<Buffer>)> copied);

 private:
  // An update that is being replicated.
  struct Replicated {
    std::shared_ptr<UpdateJob> job;
    std::function<void()> committed;
    bool applied = false;
    bool received = false;
  };

  // A device has threads of its own.
  bool runsInPlace() const {
    return store_.isOnDevice() || store_.elements() * sizeof(float) <= kInlineUpdateBytes;
  }
  void run(std::shared_ptr<UpdateJob> job, std::function<void()> done);
  void launch(std::vector<Gradient> gradients, std::function<void()> committed);
  void launchReplicated(std::vector<Gradient> gradients, const UpdateNote& note,
                        std::function<void()> committed);
  void replicate(const Gradient& mean, const UpdateNote& note, std::function<void()> committed);
  void commitReplicated();
  void commit(const std::shared_ptr<UpdateJob>& job, const std::function<void()>& committed);

  ParameterStore& store_;
  UpdateRunner& runner_;
  OutwardCalls& calls_;
  Replicator* const replicator_;
  bool busy_ = false;
  bool copying_ = false;
  std::function<void()> launch_after_copy_;          // the update that waits; null: none
  Replicated replicated_;                            // under way; no job: none is
  std::vector<std::function<void()>> idle_waiters_;  // at most two per worker, as its calls are
  std::shared_ptr<char> alive_ = std::make_shared<char>();  // watched by the runner's callbacks
};

}  // namespace dtf::ps
