#include "common/train/checkpointer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/wall_time.h"
#include "common/model/model_text.h"
#include "common/optimizer/moving_average.h"
#include "common/optimizer/optimizer.h"
#include "common/replication/replication_rules.h"
#include "common/shard/declaration.h"
#include "common/train/gathered_files.h"
#include "common/train/saved_signature.h"

namespace dtf::train {

namespace {

// Largest distance of a cut from the furthest ps, in steps: far more than workers do in a round
// trip. Each try doubles the distance.
constexpr uint64_t kMarginMax = 1 << 16;

std::string examplesText(const cluster::DatasetSpec& dataset) {
  using Format = cluster::DatasetSpec::Format;
  switch (dataset.format) {
    case Format::kIdx:
      return dataset.images.string();
    case Format::kDigits:
      return fmt::format("{} digits", dataset.count);
    case Format::kSynthetic:
      return fmt::format("{} drawn examples", dataset.count);
    case Format::kNpy:
      return dataset.npy.features.path.string();
    case Format::kNpz:
      return dataset.npy.archive.path.string();
    case Format::kImages:
      return dataset.image_folder.folder.path.string();
    case Format::kCifar10:
    case Format::kCifar100:
    case Format::kCsv:
    case Format::kLibsvm:
      break;
  }
  DTF_CHECK(!dataset.files.empty());
  std::string names;
  for (const std::filesystem::path& file : dataset.files)
    names += (names.empty() ? "" : ",") + file.string();
  return names;
}

std::string dataText(const cluster::DataSpec& data) {
  return fmt::format("{} batch_size={}", examplesText(data.train), data.batch_size);
}

// Returns a line "name=value" for each setting.
std::string settingsText(const std::vector<arena::Setting>& settings) {
  std::string text;
  for (const arena::Setting& setting : settings) text += setting.name + "=" + setting.value + "\n";
  return text;
}

}  // namespace

std::string optimizerText(const cluster::OptimizerSpec& optimizer) {
  std::string text(cluster::optimizerName(optimizer.kind));
  if (optimizer.centered) text += " centered";
  if (optimizer.moving_average_decay > 0) text += " with moving averages";
  return text;
}

Checkpointer::Checkpointer(FileSystem& file_system, const Clock& clock,
                           checkpoint::CheckpointClient& client,
                           const arena::ModelDeclaration& declaration, CheckpointerOptions options)
    : file_system_(file_system),
      clock_(clock),
      client_(client),
      declaration_(declaration),
      options_(std::move(options)),
      started_(clock.now()) {
  DTF_CHECK(!options_.job.empty() && options_.workers > 0);
  DTF_CHECK(declaration_.steps > 0 && !declaration_.layout.shards.empty());
  if (!options_.spec) return;
  if (options_.stay) staying_.emplace(client_.staying(), options_.ps_hosts, options_.hosts);
  folder_.emplace(file_system, options_.run_dir / "checkpoints", options_.incarnation,
                  staying_ ? &*staying_ : nullptr);
  folder_->prepare();
}

bool Checkpointer::cutsAtStep() const {
  return replication::cutKind(declaration_.replication) == replication::CutKind::kAtStep;
}

// ---- cut

void Checkpointer::startCut(uint64_t step) {
  DTF_CHECK(cutsAtStep());
  cut_.reset();
  const TimePoint begin = clock_.now();
  renewIfBroken();
  Cut cut;
  cut.global_step = std::min(step, declaration_.steps);
  cut.position = {cut.global_step};
  try {
    client_.startCut(cut.position, epoch_);
  } catch (const Error&) {
    broken_ = true;
    throw;
  }
  cut.held_up = clock_.now() - begin;
  cut_ = std::move(cut);
}

// Returns the cut that startCut() announced. Returns nullopt if there is none or it failed; another
// cut may still succeed.
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
                  fmt::format("{} says how far it is with {} numbers, where {} are due",
                              options_.hosts.of(static_cast<uint32_t>(ps)).name(),
                              positions[ps].size(), due));
  CutPosition furthest = positions[0];
  for (const CutPosition& position : positions)
    for (size_t i = 0; i < furthest.size(); ++i) furthest[i] = std::max(furthest[i], position[i]);
  return furthest;
}

// Makes the ps capture their shards at the furthest position of any ps; in sync mode `margin` steps
// later, up to the job's last step. A job may have been restored beyond that. Returns nullopt if a
// ps had already passed the position.
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

// Without this, the ps end the hold only after kHoldMax.
void Checkpointer::releaseHold() {
  try {
    client_.releaseHold();
  } catch (const Error& error) {
    log::info("event=hold_not_released reason=\"{}\"", error.message());
  }
}

// Returns nullopt if every ps is still at the last checkpoint.
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
      replication::batchesDone(declaration_.replication, options_.workers, position, global_step);
  manifest.optimizer = optimizerText(declaration_.optimizer);
  manifest.model_fingerprint = fmt::format("{:016x}", declaration_.layout.fingerprint());
  for (const arena::VariableInfo& variable : declaration_.layout.variables) {
    checkpoint::VariableInfo info{variable.name, variable.shape, {}};
    for (uint32_t i = 0; i < optimizer::slotCount(declaration_.optimizer, variable); ++i)
      info.slots.push_back(optimizer::slotName(declaration_.optimizer, i));
    manifest.variables.push_back(std::move(info));
  }
  manifest.run_seconds = run_seconds_before_ + toSeconds(clock_.now() - started_);
  manifest.created = wallTimeText();
  manifest.dtf_version = DTF_VERSION;
  manifest.extra[kModelKey] = model::modelText(options_.model);
  if (options_.signature) {
    manifest.extra[kSignatureKey] = data::encodeSignature(*options_.signature);
    const ClassNames words = data::classWords(*options_.signature);
    if (!words.empty()) manifest.extra[kClassesKey] = encodeClassNames(words);
  }
  if (epoch_ > 0) manifest.extra[kEpochKey] = std::to_string(epoch_);
  if (options_.epochs > 0) manifest.extra[kEpochsKey] = std::to_string(options_.epochs);
  manifest.extra[kSettingsKey] = settingsText(shard::settingsOf(declaration_));
  return manifest;
}

// Returns how long training stalled. A hold lasts until the captures are taken.
double Checkpointer::stallOf(const Cut& cut, double longest_capture) const {
  const double held_up = toSeconds(cut.held_up);
  return cutsAtStep() ? held_up + longest_capture : std::max(held_up, longest_capture);
}

SavedCheckpoint Checkpointer::write(const Cut& cut, TimePoint begin) {
  checkpoint::Manifest manifest = manifestAt(cut.position, cut.global_step);
  SavedCheckpoint result;
  result.global_step = cut.global_step;
  double longest_capture = 0;
  const std::string attempt = folder_->beginAttempt(cut.global_step);
  try {
    for (checkpoint::SavedShard& shard : saveShards(attempt, cut.position)) {
      result.bytes += shard.file.bytes;
      longest_capture = std::max(longest_capture, shard.stall_seconds);
      manifest.clocks.push_back(shard.clock);
      manifest.shards.push_back(std::move(shard.file));
    }
    DTF_CHECK(manifest.shards.size() == declaration_.layout.shards.size());
    if (options_.stay) noteWhereTheyStay(attempt, manifest);
    folder_->commit(manifest);
  } catch (const Error&) {
    folder_->abandon();
    if (options_.gather) releaseStaged(false);
    throw;
  }
  if (options_.gather) releaseStaged(true);
  last_step_ = cut.global_step;
  result.stall_seconds = stallOf(cut, longest_capture);
  result.seconds = toSeconds(clock_.now() - begin);
  return result;
}

std::vector<checkpoint::SavedShard> Checkpointer::saveShards(const std::string& attempt,
                                                             const CutPosition& position) {
  if (options_.stay) return client_.staying().save(checkpoint::stayingName(attempt), position);
  if (!options_.gather) return client_.save(attempt, position);
  return gatherShards(file_system_, client_.transfer(), folder_->path() / attempt, position,
                      declaration_, options_.hosts);
}

void Checkpointer::noteWhereTheyStay(const std::string& attempt,
                                     checkpoint::Manifest& manifest) const {
  manifest.stays_in = checkpoint::stayingName(attempt);
  for (size_t i = 0; i < manifest.shards.size(); ++i)
    manifest.shards[i].host = options_.ps_hosts.at(i);
}

// The checkpoint is already committed or abandoned. A ps that misses this call keeps its capture
// until the next one.
void Checkpointer::releaseStaged(bool saved) {
  try {
    client_.transfer().release(saved);
  } catch (const Error& error) {
    log::info("event=shards_not_released reason=\"{}\"", error.message());
  }
}

// A failure to remove old checkpoints doesn't affect the new one.
void Checkpointer::prune() {
  try {
    if (options_.stay) folder_->sweepStale();  // shards that a ps could not remove before
    folder_->removeInitial();
    std::vector<uint64_t> also;
    if (options_.keeps_also) also = options_.keeps_also();
    folder_->prune({options_.spec->keep, options_.spec->keep_every_hours, std::move(also)});
  } catch (const Error& error) {
    log::warning("event=prune_failed reason=\"old checkpoints stay until the next one: {}\"",
                 error.message());
  }
}

// A new connection lacks the requests of the old one: after a failure, calls held() again before
// `take`. At rest it retries at once; in training the supervisor retries later.
template <class Take>
auto Checkpointer::withRenewal(Motion motion, const Take& take) {
  try {
    renewIfBroken();
    return take();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable) throw;
    broken_ = true;
    if (motion != Motion::kAtRest) throw;
    log::warning("event=checkpoint_again reason=\"{}\"", error.message());
  }
  renewIfBroken();
  return take();
}

std::optional<SavedCheckpoint> Checkpointer::save(Motion motion) {
  DTF_CHECK(folder_);
  return withRenewal(motion, [this, motion] { return saveOnce(motion); });
}

void Checkpointer::renewIfBroken() {
  if (!broken_) return;
  client_.held();
  broken_ = false;
}

std::optional<SavedCheckpoint> Checkpointer::saveOnce(Motion motion) {
  const TimePoint begin = clock_.now();
  const std::optional<Cut> cut = takeCut(motion);
  if (!cut || last_step_ == cut->global_step) return std::nullopt;
  const SavedCheckpoint saved = write(*cut, begin);
  prune();
  return saved;
}

// ---- snapshots

std::optional<TakenSnapshot> Checkpointer::snapshot(Motion motion) {
  DTF_CHECK(options_.snapshots && epoch_ > 0);
  return withRenewal(motion, [this, motion] { return snapshotOnce(motion); });
}

std::optional<TakenSnapshot> Checkpointer::snapshotOnce(Motion motion) {
  const std::optional<Cut> cut = takeCut(motion);
  const checkpoint::CutName name{epoch_, cut ? cut->global_step : 0};
  if (!cut || common_snapshot_ == name) return std::nullopt;
  std::optional<checkpoint::CutName> keep;
  if (common_snapshot_) keep = {common_snapshot_->epoch, common_snapshot_->step};
  TakenSnapshot taken{cut->global_step};
  double longest_capture = 0;
  for (const checkpoint::KeptSnapshot& kept :
       client_.snapshot({name.epoch, name.step}, cut->position, keep)) {
    taken.bytes += kept.bytes;
    longest_capture = std::max(longest_capture, kept.stall_seconds);
  }
  taken.stall_seconds = stallOf(*cut, longest_capture);
  common_snapshot_ = name;
  return taken;
}

}  // namespace dtf::train
