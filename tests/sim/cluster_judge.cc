#include "tests/sim/cluster_sim.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/checkpoint/checkpoint_folder.h"
#include "common/checkpoint/restore.h"
#include "common/checkpoint/snapshot_folder.h"
#include "common/optimizer/optimizer.h"
#include "common/train/checkpointer.h"
#include "tests/sim/sim_supervisor.h"

// Judges a cluster's promises: how its processes end, the values a life resumes with, the contents
// of its disk.

namespace dtf::sim {

namespace {

// For a job that is hurt at its end: a lease, a start that waits in vain, and the patience of a
// user.
constexpr Duration kEndWithin = std::chrono::seconds(60);
// By hand, no process that waits for a lost ps ends: a few times start_seconds and rejoin_seconds.
constexpr Duration kEndByHandWithin = std::chrono::seconds(300);

}  // namespace

// A process may fail because another is gone or slow; its error names that one.
void ClusterSim::checkError(const std::string& who, const Error& error) {
  report_.errors.push_back(who + ": " + error.message());
  const bool names = error.message().find("ps/") != std::string::npos ||
                     error.message().find("worker/") != std::string::npos;
  // A run directory that can't be written ends the chief at its start.
  const bool disk = error.code() == ErrorCode::kCannotWrite && plan_.disk_error_share > 0;
  // The chief has nothing to go back to if its disk failed at the start, or a ps was lost before
  // the first checkpoint.
  const bool lost = ps_lost_ && (plan_.disk_error_share > 0 || saved_.empty()) &&
                    error.code() == ErrorCode::kBadData;
  const bool expected = disk || lost || error.code() == ErrorCode::kUnavailable ||
                        error.code() == ErrorCode::kDeadline;
  if (!expected || !(names || disk))
    complain(fmt::format("{} ends with an error that it should not: {}: {}", who,
                         errorCodeName(error.code()), error.message()));
  if (plan_.undisturbed(life()) && plan_.disk_error_share == 0)
    complain(fmt::format("{} fails, though nothing went wrong: {}", who, error.message()));
  // A process that is started again after the others have finished has no peers.
  const bool is_over = launcher_ && launcher_->hasResult();
  const bool served =
      !is_over && std::all_of(ps_.begin(), ps_.end(), [](const auto& ps) { return ps != nullptr; });
  const bool mended =
      plan_.onlyWorkersAreKilled(life()) && plan_.disk_error_share == 0 && !mayFail();
  if (mended && served && !plan_.undisturbed(life()))
    complain(fmt::format("{} fails of the loss of a worker: {}", who, error.message()));
}

// The next life goes on from the newest checkpoint there is, and begins anew only without one.
void ClusterSim::onRestored(bool held, std::optional<uint64_t> step) {
  if (step) {
    log(fmt::format("restored step {}", *step));
    // While a ps is lost, a restarted chief goes back to a checkpoint of this life.
    if (step != newest_ && !ps_lost_)
      complain(fmt::format("the checkpoint of step {} is restored, the newest is of step {}", *step,
                           newest_ ? std::to_string(*newest_) : "none"));
  } else if (!held && newest_) {
    complain(
        fmt::format("training starts anew, though there is a checkpoint of step {}", *newest_));
  } else if (!held && launcher_ && ledger_.furthestStep() > 0) {
    complain(fmt::format("training starts anew, though it was at step {} in this launch",
                         ledger_.furthestStep()));
  }
}

void ClusterSim::onRest(uint64_t step) {
  // This chief or an earlier one has saved it.
  const bool there =
      disk_.exists(std::filesystem::path(kRunDir) / "checkpoints" / fmt::format("step-{}", step));
  if (!there)
    complain(
        fmt::format("the job came to rest at step {} and said so, without a checkpoint", step));
}

void ClusterSim::judge() {
  report_.finished = std::all_of(ps_errors_.begin(), ps_errors_.end(),
                                 [](const auto& error) { return !error.has_value(); });
  if (all_killed_) return;
  if (stopped_ && report_.finished) ++report_.stopped;
  // Once the chief has its result, a ps may end before it has reported that, so other tasks miss
  // it. A worker that is started again with a ps, after the others have left, has no peers to go
  // back with.
  const bool alone = ps_lost_ && somebody_finished_;
  const bool must_finish = plan_.isOfTheEnd() ? plan_.mustEndWell(life())
                                              : !alone && plan_.mustFinish(life()) && !mayFail();
  if (!report_.finished && must_finish && ledger_.finals() == 0)
    complain("the job fails, though every loss could be mended");
  if (report_.finished && !ps_killed_ && !ps_lost_ && !mayFail() && ledger_.finals() == 0)
    complain("the job finishes without its chief");
  const Duration end_within = plan_.launched ? kEndWithin : kEndByHandWithin;
  if (plan_.isOfTheEnd() && scheduler_.now() - began_ > end_within)
    complain(fmt::format("the job took {:.0f} s", toSeconds(scheduler_.now() - began_)));
  if (!launcher_) return;
  // Mirrors launcher/snapshot_guard.h.
  if (!launcher_->gaveUp()) checkpoint::removeSnapshots(disk_, {kHostMemory});
  ++report_.launched;
  report_.given_up += launcher_->gaveUp();
  report_.missed += launcher_->missed();
  launcher_->judge(must_finish, ledger_.finals() > 0);
}

// Every visible checkpoint must be whole, and one place of training. The newest one reported as
// saved must exist, even after a power cut.
void ClusterSim::judgeDisk() {
  if (plan_.isLast(life_) || life().power_cut) disk_.powerCut(plan_.seed + life_);
  // A job that has to come to its end gets a working disk, whatever happened before.
  if (life_ + 2 >= plan_.lives.size()) disk_.heal();
  newest_.reset();
  newest_epoch_ = 0;
  newest_arenas_.clear();
  const std::filesystem::path root = std::filesystem::path(kRunDir) / "checkpoints";
  if (!disk_.exists(root)) {
    if (!saved_.empty()) complain("the folder of saved checkpoints is gone");
    return;
  }
  checkpoint::CheckpointFolder folder(disk_, root, Incarnation{1});
  const std::vector<uint64_t> steps = folder.steps();
  // A checkpoint whose commit failed in its last operation may be visible, and takes a place.
  std::set<uint64_t> places = saved_;
  places.insert(steps.begin(), steps.end());
  size_t kept = plan_.checkpoint.keep == 0 ? places.size() : plan_.checkpoint.keep;
  for (auto step = places.rbegin(); step != places.rend() && kept > 0; ++step, --kept)
    if (*step > 0 && std::find(steps.begin(), steps.end(), *step) == steps.end())
      complain(fmt::format("the checkpoint of step {} was committed, and is gone", *step));
  for (const uint64_t step : steps) judgeCheckpoint(step);
}

void ClusterSim::judgeCheckpoint(uint64_t step) {
  const std::filesystem::path folder =
      std::filesystem::path(kRunDir) / "checkpoints" / fmt::format("step-{}", step);
  const auto verified = checkpoint::verifyCheckpoint(disk_, folder, checkpoint::VerifyDepth::kFull);
  if (!verified.whole())
    return complain(fmt::format("the checkpoint of step {} is visible and not whole: {}", step,
                                verified.problems.at(0).reason));
  newest_ = step;
  newest_epoch_ = train::cutOf(*verified.manifest).epoch;
  newest_arenas_ = readArenas(folder, *verified.manifest);
  if (!judged_.insert(step).second) return;
  ledger_.onCheckpoint(newest_epoch_, step, newest_arenas_,
                       !plan_.undisturbed(life()) || life_ > 0);
  ++report_.checkpoints;
}

std::vector<SavedArena> ClusterSim::readArenas(const std::filesystem::path& folder,
                                               const checkpoint::Manifest& manifest) {
  std::vector<SavedArena> arenas(plan_.shards());
  for (uint32_t ps = 0; ps < plan_.shards(); ++ps) {
    const std::string name = fmt::format("v{}", ps);
    const auto read = [&](const std::string& tensor, std::vector<float>& values) {
      values.resize(ledger_.elements());
      checkpoint::readPart(disk_, folder, manifest, tensor, 0, ledger_.elements(), values.data());
    };
    read(name, arenas[ps].values);
    arenas[ps].slots.resize(ledger_.slots());
    for (uint32_t i = 0; i < ledger_.slots(); ++i)
      read(name + "/" + optimizer::slotName(plan_.optimizer, i), arenas[ps].slots[i]);
  }
  return arenas;
}

// The chief calls it before any ps goes back: the new epoch's parameters are judged by `target`.
void ClusterSim::onGoingBack(const checkpoint::GoingBack& target) {
  const bool to_snapshot = target.folder.empty();
  log(fmt::format("all are to go back to step {}{}", target.cut_step,
                  to_snapshot ? ", in memory" : ""));
  applySince(Fault::Since::kGoingBack);
  if (plan_.losesNothing(life()) && target.cut_step < ledger_.furthestStep())
    complain(
        fmt::format("all are to go back to step {}, though one ps was lost and its replica was not",
                    target.cut_step));
  std::vector<SavedArena> arenas;
  if (to_snapshot) {
    ++report_.to_snapshots;
    arenas = readSnapshots({target.cut_epoch, target.cut_step});
  } else {
    const auto folder = std::filesystem::path(kRunDir) / "checkpoints" / target.folder;
    arenas = readArenas(folder, checkpoint::readManifest(disk_, folder));
  }
  ledger_.goBack(target.epoch, target.cut_epoch, target.cut_step, arenas);
}

// Reads each ps's own snapshot; together they are one place of training, like a checkpoint.
std::vector<SavedArena> ClusterSim::readSnapshots(const checkpoint::CutName& name) {
  std::vector<SavedArena> arenas(plan_.shards());
  for (uint32_t ps = 0; ps < plan_.shards(); ++ps) {
    const checkpoint::SnapshotFolder folder(disk_, {kHostMemory}, ps);
    const checkpoint::Manifest manifest = folder.manifest(name);
    const auto read = [&](const std::string& tensor, std::vector<float>& values) {
      values.resize(ledger_.elements());
      const checkpoint::WantedPart part{tensor, 0, ledger_.elements(), values.data()};
      folder.read(name, manifest, {&part, 1});
    };
    const std::string variable = manifest.variables.at(0).name;
    read(variable, arenas[ps].values);
    arenas[ps].slots.resize(ledger_.slots());
    for (uint32_t i = 0; i < ledger_.slots(); ++i)
      read(variable + "/" + optimizer::slotName(plan_.optimizer, i), arenas[ps].slots[i]);
  }
  ledger_.onCheckpoint(name.epoch, name.step, arenas, !plan_.undisturbed(life()) || life_ > 0);
  return arenas;
}

}  // namespace dtf::sim
