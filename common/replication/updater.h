#pragma once

// Runs a store's updates, and copies of its slots for checkpoints, one at a time: in place for a
// small shard, otherwise by the runner. With a replica, an update counts only once the replica has
// it.

#include <functional>
#include <memory>
#include <vector>

#include "common/optimizer/parameter_store.h"
#include "common/replication/answer.h"
#include "common/replication/replicator.h"

namespace dtf::replication {

// A moment between two updates: after the one that runs, or at once when none does; or after the
// next one that ends.
enum class UpdateEnd : uint8_t { kRunning, kNext };

// Borrows: everything given to the constructor. A job that is running on destruction is dropped
// when it ends.
// Threads: loop-thread only.
// Blocks: while a small shard is updated or its slots are copied, and while a device takes the
// request for either.
// Errors: start() and copySlots() throw the errors of the device, where a shard is on one.
class Updater {
 public:
  // `replicator`: null where no replica is kept.
  Updater(optimizer::ParameterStore& store, optimizer::UpdateRunner& runner, OutwardCalls& calls,
          Replicator* replicator = nullptr);

  // Whether an update is running, or waits for a copy or a replica.
  bool busy() const { return busy_; }
  // Calls `then` between two updates, before the `committed` of the first.
  void callAfter(UpdateEnd end, std::function<void()> then);
  // Applies the mean of `gradients`, commits, then calls `committed`, perhaps before start()
  // returns: make it the caller's last statement. Precondition: not busy().
  void start(std::vector<arena::Gradient> gradients, UpdateNote note,
             std::function<void()> committed);
  // Copies all slots as they are now, then calls `copied`, perhaps before copySlots() returns. An
  // update that is started meanwhile waits. Precondition: no update and no other copy runs.
  void copySlots(std::function<void(std::vector<Buffer>)> copied);

 private:
  // An update that is being replicated.
  struct Replicated {
    std::shared_ptr<optimizer::UpdateJob> job;
    std::function<void()> committed;
    bool applied = false;
    bool received = false;
  };

  // A device has threads of its own.
  bool runsInPlace() const {
    return store_.isOnDevice() || store_.elements() * sizeof(float) <= runner_.inPlaceBytesMax();
  }
  void run(std::shared_ptr<optimizer::UpdateJob> job, std::function<void()> done);
  void launch(std::vector<arena::Gradient> gradients, std::function<void()> committed);
  void launchReplicated(std::vector<arena::Gradient> gradients, const UpdateNote& note,
                        std::function<void()> committed);
  void replicate(const arena::Gradient& mean, const UpdateNote& note,
                 std::function<void()> committed);
  void commitReplicated();
  void commit(const std::shared_ptr<optimizer::UpdateJob>& job,
              const std::function<void()>& committed);
  void callWaiters();

  optimizer::ParameterStore& store_;
  optimizer::UpdateRunner& runner_;
  OutwardCalls& calls_;
  Replicator* const replicator_;
  bool busy_ = false;
  bool copying_ = false;
  std::function<void()> launch_after_copy_;  // the update that waits; null: none
  Replicated replicated_;                    // under way; no job: none is
  std::vector<std::function<void()>>
      idle_waiters_;  // at most two per worker, as its calls are, and one of readers
  std::shared_ptr<char> alive_ = std::make_shared<char>();  // watched by the runner's callbacks
};

}  // namespace dtf::replication
