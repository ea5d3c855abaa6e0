#include "launcher/snapshot_guard.h"

namespace dtf::launcher {

SnapshotGuard::SnapshotGuard(const cluster::JobSpec& job)
    : place_(checkpoint::sharedMemoryPlace(job.job, job.run_dir)) {
  checkpoint::removeSnapshots(realFileSystem(), place_);
}

SnapshotGuard::~SnapshotGuard() {
  checkpoint::removeSnapshots(realFileSystem(), place_);
}

}  // namespace dtf::launcher
