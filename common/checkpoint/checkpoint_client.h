#pragma once

// The chief's interface to all parameter servers of a job: captures them at one cut, makes each
// write its shard, and restores them. The chief's supervisor uses it (train/supervisor.h);
// wire/checkpoint/rpc_checkpoint_client.h implements it over the network.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/cut_position.h"
#include "common/checkpoint/held_values.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/shard_file.h"
#include "common/checkpoint/shard_transfer.h"
#include "common/checkpoint/snapshot_folder.h"
#include "common/checkpoint/staying_shards.h"

namespace dtf::checkpoint {

// The shard that one ps wrote.
struct SavedShard {
  ShardFile file;
  ClockState clock;
  double stall_seconds = 0;  // how long the capture held up the shard
};

// The cut that all ps restore.
struct GoingBack {
  std::string folder;  // name of the checkpoint's folder; empty: each ps loads its own snapshot
  uint64_t cut_epoch = 0;
  uint64_t cut_step = 0;
  uint64_t epoch = 0;  // the new epoch, which begins with this cut
};

// A snapshot that one ps keeps in its host's memory.
struct KeptSnapshot {
  uint64_t bytes = 0;
  double stall_seconds = 0;  // how long the capture held up the shard
};

// Threads: one at a time, beside the training thread of the same worker.
// Blocks: each call until every ps has answered, or its deadline.
// Errors: kUnavailable, kDeadline naming the ps; a ps's own error, for example of its files.
class CheckpointClient {
 public:
  virtual ~CheckpointClient() = default;

  // Returns the values of each ps. Call it first, and again after any ps was restarted: the other
  // calls go to the processes that answered it.
  virtual std::vector<PsState> held() = 0;

  // Returns the position of each ps. With `hold`, a ps holds the pushes beyond it until the cut
  // (async).
  virtual std::vector<CutPosition> positions(bool hold) = 0;
  // Ends the hold and calls off the cuts that wait behind it.
  virtual void releaseHold() = 0;

  // Requests that every ps capture its shard at `position` of `epoch`. Returns when all ps have
  // the request.
  virtual void startCut(const CutPosition& position, uint64_t epoch) = 0;
  // Waits for the captures. Returns their global step: the number of updates applied on ps/0.
  // Nullopt: a ps had passed the cut already; try a later one.
  virtual std::optional<uint64_t> awaitCut() = 0;
  // Calls off all cuts because the job ends. Any thread; never blocks. startCut() and awaitCut(),
  // under way or later, throw kUnavailable; save() of a capture goes on.
  virtual void callOffCuts() = 0;
  // Interrupts the cut and the transfer under way because a ps was lost: they throw kUnavailable. A
  // later startCut() is not affected. Any thread; never blocks.
  virtual void interruptCuts() = 0;

  // Returns for each ps whether `file`, which the chief has just made in its folder of checkpoints,
  // appears in the ps's own: whether both are the same folder. Each ps looks for some seconds.
  virtual std::vector<bool> see(const std::string& file) = 0;

  // Replaces save() and restore() where the chief gathers the checkpoints, and restore() where the
  // shards stay with the ps. Lives as long as this.
  virtual ShardTransfer& transfer() = 0;

  // Replaces save() where the shards stay with the ps. Lives as long as this.
  virtual StayingShards& staying() = 0;

  // Makes every ps write its capture of `position` into `folder`, the name of an attempt
  // (checkpoint_folder.h).
  // Errors: kUnavailable when a ps holds the capture of another cut.
  virtual std::vector<SavedShard> save(const std::string& folder, const CutPosition& position) = 0;

  // Makes every ps keep its capture of `position` as snapshot `name` in its host's memory, and of
  // the earlier snapshots only `keep`.
  // Errors: as save().
  virtual std::vector<KeptSnapshot> snapshot(const CutName& name, const CutPosition& position,
                                             const std::optional<CutName>& keep) = 0;
  // Removes the snapshots of every ps.
  virtual void forgetSnapshots() = 0;

  // Makes `ps`, which hold no values, fetch their replicas; `epoch` goes on.
  // Errors: kUnavailable when there is no replica, or it is on another epoch.
  virtual void refill(const std::vector<uint32_t>& ps, uint64_t epoch) = 0;

  // Waits until a second ps has a complete replica of each shard, on `epoch`. From then on the loss
  // of one ps loses no update.
  // Errors: kUnavailable when no replica is kept of a ps, or it is on another epoch.
  virtual void awaitReplicas(uint64_t epoch) = 0;

  // Makes every ps read its part of the checkpoint, or its snapshot. When all have read, these
  // values become their state.
  // Errors: kBadData when a snapshot is damaged: that ps doesn't offer it again.
  virtual void restore(const GoingBack& target) = 0;
};

}  // namespace dtf::checkpoint
