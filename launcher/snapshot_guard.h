#pragma once

// The snapshots that the ps of a job keep in this host's memory
// (common/checkpoint/snapshot_folder.h) outlive each ps, and a launch that ends without the job's
// result: the next launch goes on from them. A launch that has the result removes them, for a ps
// that was killed can't remove its own.

#include <string>
#include <string_view>

#include "common/checkpoint/snapshot_folder.h"
#include "common/cluster/spec.h"
#include "launcher/task_monitor.h"

namespace dtf::launcher {

// Whether such an end makes the snapshots useless: the job has a result, or a person has
// interrupted it when all tasks were ready.
bool endsSnapshots(std::string_view outcome, bool was_ready);

// Removes them at the end of its life where endWith() says so or the job keeps none. Removes the
// sums of a host (checkpoint::removeHostSums()) that killed workers have left, always. Its owner
// holds the lock of the run directory meanwhile, so nobody else has any. Threads:
// thread-compatible. Blocks: until the memory is free.
class SnapshotGuard {
 public:
  explicit SnapshotGuard(const cluster::JobSpec& job);
  ~SnapshotGuard();
  SnapshotGuard(const SnapshotGuard&) = delete;
  SnapshotGuard& operator=(const SnapshotGuard&) = delete;

  // The launch has ended. Returns a line for a person where some stay.
  std::string endWith(Outcome outcome, bool was_ready);
  bool keeps() const { return keeps_; }

 private:
  void clean() const;

  const checkpoint::SnapshotPlace place_;
  bool keeps_;
};

}  // namespace dtf::launcher
