#pragma once

// All parameter servers of a job, as the chief's supervisor sees them (train/supervisor.h): what it
// takes to capture them at one cut, to have each write its shard, and to restore
// them. Over the network it is wire/rpc_checkpoint_client.h.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/cut_position.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/shard_file.h"
#include "common/checkpoint/shard_transfer.h"
#include "common/checkpoint/snapshot_folder.h"
#include "common/checkpoint/staying_shards.h"

namespace dtf::checkpoint {

// What one ps wrote.
struct SavedShard {
  ShardFile file;
  ClockState clock;
  double stall_seconds = 0;  // how long the capture held up the shard
};

// What one ps holds when the chief asks.
struct HeldValues {
  uint64_t epoch = 0;    // of its values, see ps/epoch.h; 0: it holds none
  uint64_t updates = 0;  // that they have had
  bool restored =
      false;  // the epoch began with a cut that all went back to, else with initial values
  uint64_t origin_epoch = 0;  // of that cut
  uint64_t origin_step = 0;
  bool from_snapshot = false;             // it was a snapshot, else a checkpoint
  std::vector<SnapshotName> snapshots{};  // that it can load
  uint64_t replica_epoch = 0;  // of the whole replica of another's shard that it keeps; 0: none
};

// To what all ps go back, by the name of its cut.
struct GoingBack {
  std::string folder;  // the checkpoint's, its name; empty: to the snapshot of that cut
  uint64_t cut_epoch = 0;
  uint64_t cut_step = 0;
  uint64_t epoch = 0;  // that begins with it
};

// What one ps keeps in its host's memory.
struct KeptSnapshot {
  uint64_t bytes = 0;
  double stall_seconds = 0;  // how long the capture held up the shard
};

// Threads: one at a time, beside the training thread of the same worker.
// Blocks: each call until every ps has answered, or its deadline.
// Errors: kUnavailable, kDeadline naming the ps; those of the files, from the ps that met them.
class CheckpointClient {
 public:
  virtual ~CheckpointClient() = default;

  // Per ps. First, and after any ps was started again: what is asked afterwards is asked of the
  // processes that answered this.
  virtual std::vector<HeldValues> held() = 0;

  // Per ps, how far it is. With `hold`, pushes beyond the answer wait until the cut (async).
  virtual std::vector<CutPosition> positions(bool hold) = 0;
  // Ends a hold, and calls off the cuts that are waited for behind it.
  virtual void releaseHold() = 0;

  // Tells every ps to capture its shard at `position`, which is on `epoch`. On return every ps
  // knows.
  virtual void startCut(const CutPosition& position, uint64_t epoch) = 0;
  // Waits for the captures. Returns the global step that they are of: how many updates ps/0 had
  // applied. Nullopt: a ps had passed the cut already; try a later one.
  virtual std::optional<uint64_t> awaitCut() = 0;
  // From any thread, without waiting: the job ends, so no cut will be reached any more. startCut()
  // and awaitCut(), under way or later, throw kUnavailable; save() of a capture goes on.
  virtual void callOffCuts() = 0;
  // Likewise, for a ps that was lost: what it was to do holds the others up. Only what is under way
  // throws.
  virtual void interruptCuts() = 0;

  // Per ps, whether it finds a file of that name in its folder of checkpoints, which the chief has
  // just written in its own: whether they are one folder. Each looks for some seconds.
  virtual std::vector<bool> see(const std::string& file) = 0;

  // For a job whose checkpoints gather at the chief, in place of save() and restore(), or whose
  // shards stay with the ps, in place of restore(). Lives as long as this.
  virtual ShardTransfer& transfer() = 0;

  // For a job whose shards stay with the ps, in place of save(). Lives as long as this.
  virtual StayingShards& staying() = 0;

  // Every ps writes what it captured at `position` into `folder`, the name of an attempt
  // (checkpoint_folder.h).
  // Errors: kUnavailable when a ps holds the capture of another cut.
  virtual std::vector<SavedShard> save(const std::string& folder, const CutPosition& position) = 0;

  // Per ps: each keeps what it captured at `position` in its host's memory, under that name, and of
  // the snapshots before it only `keep`.
  // Errors: as save().
  virtual std::vector<KeptSnapshot> snapshot(const SnapshotName& name, const CutPosition& position,
                                             const std::optional<SnapshotName>& keep) = 0;
  // No ps has snapshots any more.
  virtual void forgetSnapshots() = 0;

  // These ps, which hold nothing, fetch their replicas: `epoch` goes on.
  // Errors: kUnavailable when one isn't there any more.
  virtual void refill(const std::vector<uint32_t>& ps, uint64_t epoch) = 0;

  // Returns when each shard, on `epoch`, is whole on a second ps: from then on the loss of one
  // loses nothing.
  // Errors: kUnavailable when one isn't there any more, or on another epoch.
  virtual void awaitReplicas(uint64_t epoch) = 0;

  // Every ps reads its part of the checkpoint, or its snapshot; when all have, it becomes their
  // state.
  // Errors: kBadData when a snapshot is damaged: that ps doesn't offer it again.
  virtual void restore(const GoingBack& target) = 0;
};

}  // namespace dtf::checkpoint
