#include "common/train/checkpointer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/notify.h"
#include "common/base/text.h"
#include "common/base/wall_time.h"
#include "common/ps/declaration.h"
#include "common/ps/optimizer.h"
#include "common/ps/replication_rules.h"
#include "common/train/chief_decision.h"
#include "common/train/model_text.h"

namespace dtf::train {

namespace {

// Each try asks for a cut further on; the last is far beyond what workers do in a round trip.
constexpr uint64_t kMarginMax = 1 << 16;

// So many unusable checkpoints are named in an error; the log has all.
constexpr size_t kNamedMax = 10;

// In the manifest's `extra`.
constexpr char kModelKey[] = "model";
constexpr char kSettingsKey[] = "settings";
constexpr char kEpochKey[] = "epoch";

std::string optimizerText(const cluster::OptimizerSpec& optimizer) {
  std::string text(cluster::optimizerName(optimizer.kind));
  if (optimizer.centered) text += " centered";
  if (optimizer.moving_average_decay > 0) text += " with moving averages";
  return text;
}

std::string dataText(const cluster::DataSpec& data) {
  const bool idx = data.train.format == cluster::DatasetSpec::Format::kIdx;
  return fmt::format("{} batch_size={}",
                     idx ? data.train.images.string() : fmt::format("{} digits", data.train.count),
                     data.batch_size);
}

// One of an older version has no epoch: it was never gone back from.
ps::CutName cutOf(const checkpoint::Manifest& manifest) {
  const auto found = manifest.extra.find(kEpochKey);
  uint64_t epoch = ps::kFirstEpoch;
  if (found != manifest.extra.end()) {
    const std::string& text = found->second;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), epoch).ptr;
    if (end != text.data() + text.size() || epoch == 0)
      throw Error(ErrorCode::kBadData,
                  fmt::format("the manifest of step {} says epoch '{}', which is no number",
                              manifest.global_step, text));
  }
  return {epoch, manifest.global_step};
}

// "name=value", a line each.
std::string settingsText(const std::vector<ps::Setting>& settings) {
  std::string text;
  for (const ps::Setting& setting : settings) text += setting.name + "=" + setting.value + "\n";
  return text;
}

// A digest tells nothing but that it changed.
std::string changeText(const std::string& name, const std::string& before, const std::string& now) {
  if (name.ends_with(": content")) return name + " is another";
  return fmt::format("{} {} -> {}", name, before, now);
}

// In the order of `now`; what only one of them has is another version's business.
std::vector<std::string> changesOf(const std::string& before, const std::vector<ps::Setting>& now) {
  std::map<std::string, std::string> saved;
  for (const std::string& line : split(before, '\n')) {
    const size_t mark = line.find('=');
    if (mark != std::string::npos) saved[line.substr(0, mark)] = line.substr(mark + 1);
  }
  std::vector<std::string> changes;
  for (const ps::Setting& setting : now) {
    const auto found = saved.find(setting.name);
    if (found != saved.end() && found->second != setting.value)
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

// Training anew beside checkpoints that may only be out of reach would lose what they hold.
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

}  // namespace

Checkpointer::Checkpointer(FileSystem& file_system, const Clock& clock,
                           checkpoint::CheckpointClient& client,
                           const ps::ModelDeclaration& declaration, CheckpointerOptions options)
    : clock_(clock),
      client_(client),
      declaration_(declaration),
      options_(std::move(options)),
      folder_(file_system, options_.run_dir / "checkpoints", options_.incarnation),
      started_(clock.now()) {
  DTF_CHECK(!options_.job.empty() && options_.workers > 0);
  DTF_CHECK(declaration_.steps > 0 && !declaration_.layout.shards.empty());
  folder_.prepare();
}

bool Checkpointer::cutsAtStep() const {
  return ps::cutKind(declaration_.replication) == ps::CutKind::kAtStep;
}

// ---- restore

std::optional<uint64_t> Checkpointer::restore() {
  DTF_CHECK(!last_step_ && !resumed_ && !cut_);  // once, before anything is saved
  // The ps may hold values of a chief that died while it was saving: what it left goes, too.
  if (const uint32_t swept = folder_.sweepStale(); swept > 0)
    log::info("event=swept folders={} reason=\"left behind by a process that ended while saving\"",
              swept);
  if (options_.fresh) startFresh();
  const checkpoint::Latest latest = findLatest();
  const ps::RecoveryDecision decision = decide(latest, 0);
  epoch_ = decision.epoch;
  switch (decision.action) {
    case ps::RecoveryAction::kStart:
      log::info("event=starting_anew reason=\"no checkpoint in {}\"", folder_.path().string());
      return decision.epoch;
    case ps::RecoveryAction::kGoBack:
      goBack(latest.found.value(), decision);
      noteResumed(*latest.found);
      return std::nullopt;
    default:
      log::info(
          "event=continued reason=\"the ps hold the values of an earlier process of the chief\"");
      if (latest.found) last_step_ = latest.found->manifest.global_step;
      continued_ = true;
      return std::nullopt;
  }
}

checkpoint::Latest Checkpointer::findLatest() {
  checkpoint::Latest latest = folder_.latestValid();
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
                            "run_dir, or remove {} to start anew",
                            found.folder.string(), difference, folder_.path().string()));
}

// From the words of all ps, and with what is on the disk. Checkpoints that can't be used are in the
// way only of a job that needs one.
ps::RecoveryDecision Checkpointer::decide(const checkpoint::Latest& latest, uint64_t step) {
  const std::vector<checkpoint::HeldValues> held = client_.held();
  ps::ChiefWord chief{std::nullopt, epoch_, step, options_.incarnation.value};
  if (latest.found) chief.checkpoint = cutOf(latest.found->manifest);
  const bool lost =
      std::any_of(held.begin(), held.end(), [](const auto& v) { return v.epoch == 0; });
  if (lost && !latest.found && !latest.rejected.empty())
    throw noneUsable(latest.rejected, folder_.path());
  ps::RecoveryDecision decision = decideAsChief(held, chief);
  if (decision.action == ps::RecoveryAction::kGoBack) checkFits(latest.found.value());
  return decision;
}

void Checkpointer::goBack(const checkpoint::Latest::Found& found,
                          const ps::RecoveryDecision& decision) {
  client_.restore(
      {found.folder.filename().string(), decision.cut.epoch, decision.cut.step, decision.epoch});
  epoch_ = decision.epoch;
  last_step_ = found.manifest.global_step;
}

void Checkpointer::saveInitial() {
  if (last_step_ || continued_) return;
  try {
    save(Motion::kAtRest);
  } catch (const Error& error) {
    log::warning("event=checkpoint_failed step=0 reason=\"{}\"", error.message());
  }
}

std::optional<WentBack> Checkpointer::recover(uint64_t step) {
  DTF_CHECK(epoch_ > 0);  // restore() came first
  cut_.reset();
  const checkpoint::Latest latest = findLatest();
  const ps::RecoveryDecision decision = decide(latest, step);
  if (decision.action == ps::RecoveryAction::kContinue) return std::nullopt;
  DTF_CHECK(decision.action == ps::RecoveryAction::kGoBack);
  goBack(latest.found.value(), decision);
  log::warning("event=went_back step={} steps_lost={} epoch={} reason=\"{}\"", decision.cut.step,
               decision.steps_lost, ps::epochNumber(decision.epoch), decision.reason);
  return WentBack{decision.cut.step, decision.steps_lost, decision.reason};
}

void Checkpointer::startFresh() {
  const std::vector<checkpoint::HeldValues> held = client_.held();
  if (std::any_of(held.begin(), held.end(), [](const auto& values) { return values.epoch > 0; }))
    throw Error(ErrorCode::kBadConfig,
                "the ps hold the values of an earlier process of the chief, so the job can't start "
                "anew (--fresh): end them, too");
  if (const auto aside = folder_.setAside())
    log::info("event=checkpoints_set_aside folder={}", aside->string());
}

// For the log, and for whoever tells of the job.
void Checkpointer::noteResumed(const checkpoint::Latest::Found& found) {
  const checkpoint::Manifest& saved = found.manifest;
  run_seconds_before_ = saved.run_seconds;
  resumed_ = Resumed{saved.global_step, found.folder, saved.created, {}};
  if (const auto settings = saved.extra.find(kSettingsKey); settings != saved.extra.end())
    resumed_->changes = changesOf(settings->second, ps::settingsOf(declaration_));
  log::info("event=restored checkpoint={} global_step={} saved={}", found.folder.string(),
            saved.global_step, saved.created);
  if (!resumed_->changes.empty()) {
    const std::string line = fmt::format("event=settings_changed since_step={} changes=\"{}\"",
                                         saved.global_step, join(resumed_->changes, "; "));
    // A launcher shows the changes itself, so for its console this line is a detail.
    notifyEnabled() ? log::info("{}", line) : log::warning("{}", line);
  }
  if (saved.global_step >= declaration_.steps)
    log::info("event=nothing_to_train global_step={} steps={} advice=\"--fresh starts anew\"",
              saved.global_step, declaration_.steps);
}

std::string Checkpointer::differenceTo(const checkpoint::Manifest& saved) const {
  const checkpoint::Manifest wanted = manifestAt(CutPosition{}, 0);
  std::string difference = checkpoint::manifestDifference(saved, wanted);
  if (!difference.empty()) return difference;
  // A checkpoint of an older version has no text.
  const auto model = saved.extra.find(kModelKey);
  if (model == saved.extra.end()) return {};
  return modelTextDifference(model->second, wanted.extra.at(kModelKey));
}

// ---- cut

void Checkpointer::startCut(uint64_t step) {
  DTF_CHECK(cutsAtStep());
  cut_.reset();
  const TimePoint begin = clock_.now();
  Cut cut;
  cut.global_step = std::min(step, declaration_.steps);
  cut.position = {cut.global_step};
  client_.startCut(cut.position, epoch_);
  cut.held_up = clock_.now() - begin;
  cut_ = std::move(cut);
}

// What startCut() began. Nullopt: nothing, or it was missed, for whatever reason: another cut may
// be had.
std::optional<Checkpointer::Cut> Checkpointer::takeStartedCut() {
  std::optional<Cut> cut = std::exchange(cut_, std::nullopt);
  if (!cut) return std::nullopt;
  try {
    const std::optional<uint64_t> global_step = client_.awaitCut();
    if (!global_step) return std::nullopt;
    cut->global_step = *global_step;
    return cut;
  } catch (const Error& error) {
    log::warning("event=checkpoint_missed step={} reason=\"{}\"", cut->global_step,
                 error.message());
    return std::nullopt;
  }
}

CutPosition Checkpointer::furthestPosition(bool hold) {
  const std::vector<CutPosition> positions = client_.positions(hold);
  DTF_CHECK(!positions.empty());
  const size_t due = cutsAtStep() ? 1 : options_.workers;
  for (size_t ps = 0; ps < positions.size(); ++ps)
    if (positions[ps].size() != due)
      throw Error(ErrorCode::kBadData,
                  fmt::format("ps/{} says how far it is with {} numbers, where {} are due", ps,
                              positions[ps].size(), due));
  CutPosition furthest = positions[0];
  for (const CutPosition& position : positions)
    for (size_t i = 0; i < furthest.size(); ++i) furthest[i] = std::max(furthest[i], position[i]);
  return furthest;
}

// Has the ps captured at the furthest position that any of them is at, and `margin` steps on, where
// the job has so many; it may have been restored beyond them. Nullopt: it was too late.
std::optional<Checkpointer::Cut> Checkpointer::tryFurthestCut(Motion motion, uint64_t margin) {
  const bool hold = !cutsAtStep() && motion == Motion::kTraining;
  const TimePoint begin = clock_.now();
  try {
    Cut cut;
    cut.position = furthestPosition(hold);
    uint64_t& step = cut.position.at(0);
    if (cutsAtStep()) step = std::max(step, std::min(step + margin, declaration_.steps));
    client_.startCut(cut.position, epoch_);
    const std::optional<uint64_t> global_step = client_.awaitCut();
    if (!global_step) return std::nullopt;
    cut.global_step = *global_step;
    if (hold) cut.held_up = clock_.now() - begin;
    return cut;
  } catch (const Error&) {
    if (!cutsAtStep()) releaseHold();
    throw;
  }
}

// The ps would go on by themselves, but only after kHoldMax.
void Checkpointer::releaseHold() {
  try {
    client_.releaseHold();
  } catch (const Error& error) {
    log::info("event=hold_not_released reason=\"{}\"", error.message());
  }
}

// Nullopt: every ps is still where the last checkpoint was taken.
std::optional<Checkpointer::Cut> Checkpointer::takeCut(Motion motion) {
  if (std::optional<Cut> cut = takeStartedCut()) return cut;
  const bool at_rest = motion == Motion::kAtRest;
  if (at_rest && cutsAtStep() && last_step_ == furthestPosition(false).at(0)) return std::nullopt;
  for (uint64_t margin = at_rest ? 0 : 1; margin <= kMarginMax;
       margin = std::max<uint64_t>(1, 2 * margin)) {
    if (std::optional<Cut> cut = tryFurthestCut(motion, margin)) return cut;
  }
  throw Error(ErrorCode::kUnavailable,
              "the ps went on faster than a checkpoint could be agreed on");
}

// ---- save

checkpoint::Manifest Checkpointer::manifestAt(const CutPosition& position,
                                              uint64_t global_step) const {
  checkpoint::Manifest manifest;
  manifest.job = options_.job;
  manifest.global_step = global_step;
  manifest.seed = options_.data.seed;
  manifest.data = dataText(options_.data);
  manifest.worker_batches =
      ps::batchesDone(declaration_.replication, options_.workers, position, global_step);
  manifest.optimizer = optimizerText(declaration_.optimizer);
  manifest.model_fingerprint = fmt::format("{:016x}", declaration_.layout.fingerprint());
  for (const ps::VariableInfo& variable : declaration_.layout.variables) {
    checkpoint::VariableInfo info{variable.name, variable.shape, {}};
    for (uint32_t i = 0; i < ps::slotCount(declaration_.optimizer); ++i)
      info.slots.push_back(ps::slotName(declaration_.optimizer, i));
    manifest.variables.push_back(std::move(info));
  }
  manifest.run_seconds = run_seconds_before_ + toSeconds(clock_.now() - started_);
  manifest.created = wallTimeText();
  manifest.dtf_version = DTF_VERSION;
  manifest.extra[kModelKey] = modelText(options_.model);
  if (epoch_ > 0) manifest.extra[kEpochKey] = std::to_string(epoch_);
  manifest.extra[kSettingsKey] = settingsText(ps::settingsOf(declaration_));
  return manifest;
}

SavedCheckpoint Checkpointer::write(const Cut& cut, TimePoint begin) {
  checkpoint::Manifest manifest = manifestAt(cut.position, cut.global_step);
  SavedCheckpoint result;
  result.global_step = cut.global_step;
  double longest_capture = 0;
  const std::string attempt = folder_.beginAttempt(cut.global_step);
  try {
    for (checkpoint::SavedShard& shard : client_.save(attempt, cut.position)) {
      result.bytes += shard.file.bytes;
      longest_capture = std::max(longest_capture, shard.stall_seconds);
      manifest.clocks.push_back(shard.clock);
      manifest.shards.push_back(std::move(shard.file));
    }
    DTF_CHECK(manifest.shards.size() == declaration_.layout.shards.size());
    folder_.commit(manifest);
  } catch (const Error&) {
    folder_.abandon();
    throw;
  }
  last_step_ = cut.global_step;
  const double held_up = toSeconds(cut.held_up);
  // A hold lasts until the captures are taken.
  result.stall_seconds =
      cutsAtStep() ? held_up + longest_capture : std::max(held_up, longest_capture);
  result.seconds = toSeconds(clock_.now() - begin);
  return result;
}

// The new checkpoint is safe whatever becomes of the old ones.
void Checkpointer::prune() {
  try {
    folder_.removeInitial();
    folder_.prune({options_.spec.keep, options_.spec.keep_every_hours});
  } catch (const Error& error) {
    log::warning("event=prune_failed reason=\"old checkpoints stay until the next one: {}\"",
                 error.message());
  }
}

std::optional<SavedCheckpoint> Checkpointer::save(Motion motion) {
  const TimePoint begin = clock_.now();
  const std::optional<Cut> cut = takeCut(motion);
  if (!cut || last_step_ == cut->global_step) return std::nullopt;
  const SavedCheckpoint saved = write(*cut, begin);
  prune();
  return saved;
}

}  // namespace dtf::train
