// Second part of Checkpointer: recovery, at the start of a job and after the loss of a ps.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/base/notify.h"
#include "common/base/text.h"
#include "common/checkpoint/former_variables.h"
#include "common/model/former_names.h"
#include "common/model/model_text.h"
#include "common/replication/replication_rules.h"
#include "common/shard/declaration.h"
#include "common/train/checkpointer.h"
#include "common/train/chief_decision.h"
#include "common/train/gathered_files.h"
#include "common/train/moved_epochs.h"
#include "common/train/saved_signature.h"
#include "common/train/trained_split.h"
#include "common/yaml/error_at.h"

namespace dtf::train {

namespace {

// Largest number of unusable checkpoints in an error; the log has all.
constexpr size_t kNamedMax = 10;

// A digest shows only that the content changed.
std::string changeText(const std::string& name, const std::string& before, const std::string& now) {
  if (name.ends_with(": content")) return name + " is another";
  return fmt::format("{} {} -> {}", name, before, now);
}

// Returns the changed settings, in the order of `now`. Ignores a setting that only one side has: it
// comes from another version of dtf.
std::vector<std::string> changesOf(const std::string& before,
                                   const std::vector<arena::Setting>& now) {
  std::map<std::string, std::string> saved;
  for (const std::string& line : split(before, '\n')) {
    const size_t mark = line.find('=');
    if (mark != std::string::npos) saved[line.substr(0, mark)] = line.substr(mark + 1);
  }
  std::vector<std::string> changes;
  for (const arena::Setting& setting : now) {
    const auto found = saved.find(setting.name);
    if (found != saved.end() &&
        model::todaysText(found->second) != model::todaysText(setting.value))
      changes.push_back(changeText(setting.name, found->second, setting.value));
  }
  return changes;
}

void warnAbout(const std::vector<checkpoint::Rejected>& rejected) {
  for (const checkpoint::Rejected& one : rejected)
    for (const checkpoint::Problem& problem : one.problems)
      log::warning("event=checkpoint_rejected step={} file={}{} reason=\"{}\"", one.step,
                   problem.file, problem.tensor.empty() ? "" : " tensor=" + problem.tensor,
                   problem.reason);
}

// The job must not train anew: the checkpoints may only be out of reach, and would be lost.
Error noneUsable(const std::vector<checkpoint::Rejected>& rejected,
                 const std::filesystem::path& folder) {
  std::string text = fmt::format("none of the checkpoints in {} can be used:", folder.string());
  for (size_t i = 0; i < std::min(rejected.size(), kNamedMax); ++i) {
    const std::vector<checkpoint::Problem>& problems = rejected[i].problems;
    text += fmt::format("\n  step {}: {}", rejected[i].step, problems.at(0).reason);
    if (problems.size() > 1) text += fmt::format(" (and {} more)", problems.size() - 1);
  }
  if (rejected.size() > kNamedMax)
    text += fmt::format("\n  and {} more", rejected.size() - kNamedMax);
  text += "\nMake one of them readable; or start anew with another run_dir, or without that folder";
  return {ErrorCode::kBadData, text};
}

// Logs a warning if the job had begun before.
void noteStartingAnew(bool had_begun, const std::string& reason) {
  const std::string line = fmt::format("event=starting_anew reason=\"{}\"", reason);
  had_begun ? log::warning("{}", line) : log::info("{}", line);
}

WentBack wentBackBy(const replication::RecoveryDecision& decision) {
  return {decision.cut.step, decision.steps_lost, decision.reason,
          decision.origin == checkpoint::EpochOrigin::kSnapshot, decision.epoch};
}

}  // namespace

// A checkpoint of an older version has no epoch: jobs could not go back then.
checkpoint::CutName cutOf(const checkpoint::Manifest& manifest) {
  const auto found = manifest.extra.find(kEpochKey);
  uint64_t epoch = replication::kFirstEpoch;
  if (found != manifest.extra.end()) {
    const std::string& text = found->second;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), epoch).ptr;
    if (end != text.data() + text.size() || !replication::validEpoch(epoch))
      throw Error(ErrorCode::kBadData,
                  fmt::format("the manifest of step {} says epoch '{}', which is none",
                              manifest.global_step, text));
  }
  return {epoch, manifest.global_step};
}

std::optional<uint64_t> Checkpointer::start() {
  constexpr int kTriesMax = 5;
  for (int tries = 1;; ++tries) {
    try {
      const std::optional<uint64_t> epoch = restore();
      // The last try skips the initial checkpoint, but not the replicas.
      if (!epoch && tries < kTriesMax) saveInitial();
      if (!epoch) awaitFirstReplicas();
      return epoch;
    } catch (const Error& error) {
      const bool passes =
          error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kDeadline;
      if (!passes || tries == kTriesMax) throw;
      log::warning("event=start_again tries={} reason=\"{}\"", tries, error.message());
    }
  }
}

// Runs once. If a ps is lost meanwhile, the next try runs it again from the start.
void Checkpointer::prepare() {
  if (prepared_) return;
  if (options_.stay) client_.held();  // connects to the ps, which remove shards
  // Necessary even if the ps hold values: the last chief may have died while it was saving.
  if (const uint32_t swept = folder_ ? folder_->sweepStale() : 0; swept > 0)
    log::info("event=swept folders={} reason=\"left behind by a process that ended while saving\"",
              swept);
  if (options_.fresh) startFresh();
  prepared_ = true;
}

// Without the check, a shard written elsewhere would be missed only at the first checkpoint, when
// work is lost. A shard read elsewhere could be of another checkpoint.
void Checkpointer::checkShared() {
  const bool apart = options_.gather || options_.stay;
  if (!folder_ || apart || !options_.elsewhere || shared_) return;
  client_.held();  // connects to the ps
  std::vector<bool> seen;
  try {
    seen = client_.see(folder_->showMark());
  } catch (const Error& error) {
    folder_->removeMark();
    if (error.code() != ErrorCode::kCannotWrite) throw;
    // A disk that is full now may have room when a checkpoint is due.
    log::warning("event=sharing_not_checked reason=\"{}\"", error.message());
    return;
  }
  folder_->removeMark();
  std::vector<std::string> blind;
  for (size_t i = 0; i < seen.size(); ++i)
    if (!seen[i]) blind.push_back(options_.hosts.of(static_cast<uint32_t>(i)).name());
  shared_ = blind.empty();
  if (shared_) return;
  throw yaml::ErrorAt(
      ErrorCode::kBadConfig, options_.spec->mark,
      fmt::format("{} {} not see the chief's files in {}: set `gather: true` here, and worker/0 "
                  "keeps the files of all ps, or `stay: true`, and each ps keeps its own; or give "
                  "the job a run_dir on a disk that the hosts share",
                  join(blind, ", "), blind.size() == 1 ? "does" : "do", folder_->path().string()));
}

std::optional<uint64_t> Checkpointer::restore() {
  DTF_CHECK(!cut_);
  prepare();
  checkShared();
  epoch_ = 0;  // this chief has not trained yet
  const checkpoint::Latest latest = findLatest();
  const replication::RecoveryDecision decision = decideAndGoBack(latest, 0);
  epoch_ = decision.epoch;
  const bool is_own = std::exchange(begun_, decision.epoch) == decision.epoch;
  switch (decision.action) {
    case replication::RecoveryAction::kStart:
      noteStartingAnew(options_.reached_step.has_value(),
                       options_.reached_step ? decision.reason
                       : folder_             ? "no checkpoint in " + folder_->path().string()
                                             : "the job keeps no checkpoints");
      return decision.epoch;
    case replication::RecoveryAction::kGoBack:
      if (decision.origin == checkpoint::EpochOrigin::kCheckpoint) noteResumed(*latest.found);
      if (decision.origin == checkpoint::EpochOrigin::kSnapshot || !decision.ps.empty())
        goes_on_.went_back = wentBackBy(decision);
      return std::nullopt;
    default:
      if (is_own) return std::nullopt;
      log::info(
          "event=continued reason=\"the ps hold the values of an earlier process of the chief\"");
      if (latest.found) last_step_ = latest.found->manifest.global_step;
      continued_ = true;
      return std::nullopt;
  }
}

checkpoint::Latest Checkpointer::findLatest() {
  if (!folder_) return {};
  if (options_.stay) client_.held();  // connects to the ps, which have the shards
  checkpoint::Latest latest = folder_->latestValid();
  warnAbout(latest.rejected);
  return latest;
}

void Checkpointer::checkFits(const checkpoint::Latest::Found& found) const {
  const checkpoint::Manifest& saved = found.manifest;
  if (saved.job != options_.job)
    throw Error(
        ErrorCode::kBadConfig,
        fmt::format("{} is a checkpoint of the job '{}', but this job is '{}'\nGive each job "
                    "a run_dir of its own; or call this one '{}' to go on with that one",
                    found.folder.string(), saved.job, options_.job, saved.job));
  if (const std::string difference = differenceTo(saved); !difference.empty())
    throw Error(ErrorCode::kBadConfig,
                fmt::format("{} is a checkpoint of another model:\n{}\nGive this job another "
                            "run_dir, or another 'job:' name where its file has no run_dir. "
                            "Or start anew: dtf-launch --fresh moves the old checkpoints aside, "
                            "and keeps them. Without dtf-launch, move {} away first.",
                            found.folder.string(), difference, folder_->path().string()));
}

// Decides by the state of all ps and the newest checkpoint. Unusable checkpoints are an error only
// if the job needs one.
replication::RecoveryDecision Checkpointer::decide(const checkpoint::Latest& latest, uint64_t step,
                                                   bool with_snapshots) {
  std::vector<checkpoint::PsState> held = client_.held();
  const auto is_empty = [](const checkpoint::PsState& values) { return values.epoch == 0; };
  for (checkpoint::PsState& values : held)
    if (!with_snapshots) values.snapshots.clear();
  common_snapshot_ = replication::newestCommonSnapshot(held);
  replication::ChiefState chief{
      std::nullopt,          epoch_,        step, options_.incarnation.value, named_,
      options_.reached_step, options_.hosts};
  if (latest.found) chief.checkpoint = cutOf(latest.found->manifest);
  const bool lost = std::any_of(held.begin(), held.end(), is_empty);
  if (lost && !latest.found && !latest.rejected.empty() && !common_snapshot_)
    throw noneUsable(latest.rejected, folder_->path());
  replication::RecoveryDecision decision = decideAsChief(held, chief);
  named_ = std::max(named_, decision.epoch);
  if (decision.action == replication::RecoveryAction::kGoBack &&
      decision.origin == checkpoint::EpochOrigin::kCheckpoint)
    checkFits(latest.found.value());
  return decision;
}

// A ps doesn't offer a snapshot again that it failed to load. So each try decides on another
// snapshot, and finally on a checkpoint.
replication::RecoveryDecision Checkpointer::decideAndGoBack(const checkpoint::Latest& latest,
                                                            uint64_t step) {
  constexpr int kSnapshotTriesMax = 4;  // each ps keeps two
  for (int tries = 0;; ++tries) {
    replication::RecoveryDecision decision = decide(latest, step, tries < kSnapshotTriesMax);
    if (decision.action == replication::RecoveryAction::kRefill) refill(decision);
    if (decision.action != replication::RecoveryAction::kGoBack || goBack(latest, decision))
      return decision;
  }
}

// Returns false if a snapshot can't be loaded.
bool Checkpointer::goBack(const checkpoint::Latest& latest,
                          const replication::RecoveryDecision& decision) {
  const bool to_snapshot = decision.origin == checkpoint::EpochOrigin::kSnapshot;
  checkpoint::GoingBack target{"", decision.cut.epoch, decision.cut.step, decision.epoch};
  if (!to_snapshot) target.folder = latest.found.value().folder.filename().string();
  try {
    if (!to_snapshot && (options_.gather || options_.stay)) {
      bringShards(file_system_, client_.transfer(), latest.found->folder, latest.found->manifest,
                  declaration_, staying_ ? &*staying_ : nullptr);
      client_.transfer().commit(target);
    } else {
      client_.restore(target);
    }
  } catch (const Error& error) {
    if (!to_snapshot || error.code() != ErrorCode::kBadData) throw;
    log::warning("event=snapshot_rejected step={} reason=\"{}\"", decision.cut.step,
                 error.message());
    return false;
  }
  DTF_FAILPOINT("recovery.after_commit");
  epoch_ = decision.epoch;
  last_step_.reset();
  if (latest.found) last_step_ = latest.found->manifest.global_step;
  if (decision.steps_lost > 0 || !decision.ps.empty() || to_snapshot)
    log::warning("event=went_back step={} steps_lost={} epoch={} reason=\"{}\"", decision.cut.step,
                 decision.steps_lost, replication::epochNumber(decision.epoch), decision.reason);
  return true;
}

void Checkpointer::refill(const replication::RecoveryDecision& decision) {
  client_.refill(decision.ps, decision.epoch);
  DTF_FAILPOINT("recovery.after_refill");
  broken_ = true;  // earlier requests went to other processes
  log::warning("event=refilled epoch={} reason=\"{}\"", replication::epochNumber(decision.epoch),
               decision.reason);
}

void Checkpointer::saveInitial() {
  // After an earlier chief that saved nothing, async workers may be training already. Sync workers
  // can't complete a step without this chief.
  const Motion motion = continued_ && !cutsAtStep() ? Motion::kTraining : Motion::kAtRest;
  try {
    if (folder_) {
      if (!last_step_) save(motion);
    } else if (options_.snapshots && !common_snapshot_) {
      snapshot(motion);
    }
  } catch (const Error& error) {
    // Without the initial checkpoint, the loss of a ps ends the job. If a ps was lost now, start()
    // tries again.
    if (error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kDeadline) throw;
    log::warning("event={}_failed step=0 reason=\"{}\"", folder_ ? "checkpoint" : "snapshot",
                 error.message());
  }
}

// Without a checkpoint, the values must be on two ps before training goes on.
void Checkpointer::awaitFirstReplicas() {
  if (options_.replicas && !last_step_) client_.awaitReplicas(epoch_);
}

std::optional<WentBack> Checkpointer::recover(uint64_t step) {
  DTF_CHECK(epoch_ > 0);  // restore() came first
  cut_.reset();
  const checkpoint::Latest latest = findLatest();
  const uint64_t epoch_before = epoch_;
  const replication::RecoveryDecision decision = decideAndGoBack(latest, step);
  if (decision.action == replication::RecoveryAction::kGoBack) return wentBackBy(decision);
  DTF_CHECK(decision.action == replication::RecoveryAction::kContinue ||
            decision.action == replication::RecoveryAction::kRefill);
  if (decision.epoch == epoch_before) return std::nullopt;
  // An earlier try reached every ps, but not every reply came back.
  epoch_ = decision.epoch;
  last_step_.reset();
  if (latest.found) last_step_ = latest.found->manifest.global_step;
  const uint64_t back_at = decision.cut.step;
  return WentBack{
      back_at, step > back_at ? step - back_at : 0,
      fmt::format("all went back to the {} of step {}",
                  decision.origin == checkpoint::EpochOrigin::kSnapshot ? "snapshot" : "checkpoint",
                  back_at),
      decision.origin == checkpoint::EpochOrigin::kSnapshot, decision.epoch};
}

void Checkpointer::startFresh() {
  const std::vector<checkpoint::PsState> held = client_.held();
  if (std::any_of(held.begin(), held.end(), [](const auto& values) { return values.epoch > 0; }))
    throw Error(ErrorCode::kBadConfig,
                "the ps hold the values of an earlier process of the chief, so the job can't start "
                "anew (--fresh): end them, too");
  if (options_.snapshots) client_.forgetSnapshots();
  if (!folder_) return;
  if (const auto aside = folder_->setAside())
    log::info("event=checkpoints_set_aside folder={}", aside->string());
}

// Records the resumed checkpoint for goesOn() and logs it.
void Checkpointer::noteResumed(const checkpoint::Latest::Found& found) {
  const checkpoint::Manifest& saved = found.manifest;
  run_seconds_before_ = saved.run_seconds;
  goes_on_.resumed = Resumed{saved.global_step, found.folder, saved.created, {}};
  if (const auto settings = saved.extra.find(kSettingsKey); settings != saved.extra.end())
    goes_on_.resumed->changes = changesOf(settings->second, shard::settingsOf(declaration_));
  const EpochsOfJob job{options_.epochs, declaration_.steps, options_.workers,
                        replication::sharesSteps(declaration_.replication)};
  if (const std::string moved = movedEpochsText(saved, job); !moved.empty())
    goes_on_.resumed->changes.push_back(moved);
  if (const std::string trained =
          trainedExamplesText(trainedSplit(saved), splitSettingOf(declaration_.settings));
      !trained.empty())
    goes_on_.resumed->changes.push_back(trained);
  log::info("event=restored checkpoint={} global_step={} saved={}", found.folder.string(),
            saved.global_step, saved.created);
  if (!goes_on_.resumed->changes.empty()) {
    const std::string line = fmt::format("event=settings_changed since_step={} changes=\"{}\"",
                                         saved.global_step, join(goes_on_.resumed->changes, "; "));
    // A launcher shows the changes itself, so its console needs no warning.
    notifyEnabled() ? log::info("{}", line) : log::warning("{}", line);
  }
  if (saved.global_step >= declaration_.steps)
    log::info("event=nothing_to_train global_step={} steps={} advice=\"--fresh starts anew\"",
              saved.global_step, declaration_.steps);
}

std::string Checkpointer::differenceTo(const checkpoint::Manifest& saved) const {
  const checkpoint::Manifest wanted = manifestAt(CutPosition{}, 0);
  std::string difference = checkpoint::manifestDifference(
      checkpoint::underNames(saved, checkpoint::namesOf(declaration_.layout.variables)), wanted);
  if (!difference.empty()) return difference;
  // A checkpoint of an older version has no text of the model.
  const auto model = saved.extra.find(kModelKey);
  if (model == saved.extra.end()) return {};
  // Compares the data first, as the model's text has only the digest of a list of words.
  if (options_.signature)
    difference = meaningDifference(saved, *options_.signature, "the training data");
  if (!difference.empty()) return difference;
  return model::modelTextDifference(model->second, wanted.extra.at(kModelKey));
}

}  // namespace dtf::train
