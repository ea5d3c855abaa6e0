#include "launcher/snapshot_guard.h"

namespace dtf::launcher {

bool endsSnapshots(std::string_view outcome, bool was_ready) {
  return outcome != outcomeName(Outcome::kFailed) &&
         (outcome != outcomeName(Outcome::kInterrupted) || was_ready);
}

SnapshotGuard::SnapshotGuard(const cluster::JobSpec& job)
    : place_(checkpoint::sharedMemoryPlace(job.job, job.run_dir)),
      keeps_(job.durability.kind == cluster::Durability::kSnapshot) {
  clean();
}

SnapshotGuard::~SnapshotGuard() {
  clean();
}

void SnapshotGuard::clean() const {
  if (keeps_)
    checkpoint::removeHostSums(realFileSystem(), place_);
  else
    checkpoint::removeSnapshots(realFileSystem(), place_);
}

std::string SnapshotGuard::endWith(Outcome outcome, bool was_ready) {
  if (endsSnapshots(outcomeName(outcome), was_ready)) keeps_ = false;
  if (keeps_) checkpoint::removeHostSums(realFileSystem(), place_);
  if (!keeps_ || !realFileSystem().exists(place_.folder)) return "";
  return "the snapshots in " + place_.folder.string() +
         " stay: the next launch goes on from them, and --fresh drops them";
}

}  // namespace dtf::launcher
