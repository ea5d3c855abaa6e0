#pragma once

// The chief's decision, carried out on one shard (replication/job_recovery.h): going back to the
// values of a cut, and filling an empty shard from its replica.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/base/cut_position.h"
#include "common/base/ids.h"
#include "common/optimizer/parameter_store.h"
#include "common/replication/epoch.h"
#include "common/replication/replicator.h"
#include "common/shard/shard_backup.h"
#include "common/shard/shard_cuts.h"
#include "common/shard/shard_options.h"
#include "common/shard/shard_values.h"
#include "common/shard/shard_waits.h"
#include "common/shard/worker_table.h"
#include "common/tensor/buffer.h"

namespace dtf::shard {

// A shard's state at a cut, and the epoch that begins with it.
struct RestoredShard : checkpoint::HeldValues {
  RestoredShard() : HeldValues{replication::kFirstEpoch, 0, checkpoint::EpochOrigin::kCheckpoint} {}
  CutPosition position;
  Buffer values;              // the arena
  std::vector<Buffer> slots;  // arenas
  optimizer::OptimizerClock::State clock;
};

// The chief's incarnation is checked at each call.
// Owns: the note that the chief reads saved values.
// Borrows: everything given to the constructor (must outlive this).
// Threads: loop-thread only.
// Blocks: while values are copied.
// Errors: kUnavailable: the caller is not the chief's live process, or it came too early.
class ShardRecovery {
 public:
  // `take`: replaces the shard's values by those that the given function puts into an empty store,
  // and begins their epoch.
  using Take = std::function<void(const Beginning&, const std::function<void()>&)>;
  ShardRecovery(const ShardOptions& options, const Clock& clock, replication::OutwardCalls& calls,
                WorkerTable& workers, ShardValues& values, ShardBackup& backup, ShardCuts& cuts,
                Take take);

  // Notes that the chief has every ps read a cut; restore() follows. Until then waiting calls have
  // no deadline, while the chief lives and for at most kBringBackMax.
  void expectRestore(Incarnation chief);
  // Takes `state`, in place of initial values or of the shard's own values, and answers the waiting
  // calls with kWentBack. Returns false when it is on that epoch already.
  // Errors: kUnavailable when it is on a later one; kBadConfig or kBadData when the state doesn't
  // fit, or there is no memory for it. In these two cases the shard is empty, and the waiting calls
  // get the error.
  bool restore(Incarnation chief, const RestoredShard& state);

  // Fills an empty shard from its replica, in place of initial values or restore(). Nothing was
  // lost, so `epoch` continues. No effect when it is on that epoch already.
  // Errors: kUnavailable when it holds other values, or no replica is kept; kBadData when the
  // replica doesn't fit.
  void refill(Incarnation chief, uint64_t epoch, replication::WaitCallback callback);
  // Answers once the backup holds the same values as this shard, in `epoch`.
  // Errors, to the callback: kUnavailable when no replica is kept, when this shard is on another
  // epoch or leaves that one, or when the chief calls again.
  void awaitReplica(Incarnation chief, uint64_t epoch, replication::WaitCallback callback);

  // ---- calls of the shard

  // Whether the chief that said so in expectRestore() still may bring saved values.
  bool isGoingBack() const;
  // Notes that the shard has taken values.
  void haveCome() { expected_.reset(); }
  // Whether this process took its values from its replica: workers had trained before.
  bool hasRefilled() const { return has_refilled_; }

 private:
  struct Expected {
    Incarnation chief;
    TimePoint since;
  };
  void takeReplica(uint64_t epoch, const replication::ReplicaSeed& seed, uint64_t backups_met);
  void awaitAbsent();

  const ShardOptions& options_;
  const Clock& clock_;
  replication::OutwardCalls& calls_;
  WorkerTable& workers_;
  ShardValues& values_;
  ShardBackup& backup_;
  ShardCuts& cuts_;
  const Take take_;
  std::optional<Expected> expected_;
  bool has_refilled_ = false;
};

}  // namespace dtf::shard
