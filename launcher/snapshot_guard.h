#pragma once

// The snapshots that the ps of a job keep in this host's memory (common/checkpoint/snapshot_folder.h)
// live as long as its launch: a ps that was killed can't remove its own.

#include "common/checkpoint/snapshot_folder.h"
#include "common/cluster/spec.h"

namespace dtf::launcher {

// Removes them at both ends of its life: what a launch before left that was killed itself, and what
// this one leaves. Its owner holds the lock of the run directory meanwhile, so nobody else has any.
// Threads: thread-compatible.
// Blocks: until the memory is free.
class SnapshotGuard {
 public:
  explicit SnapshotGuard(const cluster::JobSpec& job);
  ~SnapshotGuard();
  SnapshotGuard(const SnapshotGuard&) = delete;
  SnapshotGuard& operator=(const SnapshotGuard&) = delete;

 private:
  const checkpoint::SnapshotPlace place_;
};

}  // namespace dtf::launcher
