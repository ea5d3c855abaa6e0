#include "common/train/checkpointer.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <numeric>
#include <utility>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/ps/optimizer.h"

namespace dtf::train {

namespace {

// Each try asks for a place further on; the last is far beyond what workers do in a round trip.
constexpr uint64_t kMarginMax = 1 << 16;

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

std::string nowText() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

void warnAbout(const std::vector<checkpoint::Rejected>& rejected) {
  for (const checkpoint::Rejected& one : rejected)
    for (const checkpoint::Problem& problem : one.problems)
      log::warning("event=checkpoint_rejected step={} file={}{} reason=\"{}\"", one.step,
                   problem.file, problem.tensor.empty() ? "" : " tensor=" + problem.tensor,
                   problem.reason);
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
  folder_.prepare();
}

bool Checkpointer::isSync() const {
  return declaration_.replication.mode == cluster::ReplicationSpec::Mode::kSync;
}

uint64_t Checkpointer::stepOf(const checkpoint::Position& position) const {
  return std::accumulate(position.begin(), position.end(), uint64_t{0});
}

// ---- restore

bool Checkpointer::restore() {
  if (client_.initialised()) {
    log::info(
        "event=continued reason=\"the ps hold the values of an earlier process of the chief\"");
    return true;
  }
  if (const uint32_t swept = folder_.sweepStale(); swept > 0)
    log::info("event=swept folders={} reason=\"left behind by a process that ended while saving\"",
              swept);
  const checkpoint::Latest latest = folder_.latestValid();
  warnAbout(latest.rejected);
  if (!latest.found) {
    log::info("event=starting_anew reason=\"no {}checkpoint in {}\"",
              latest.rejected.empty() ? "" : "whole ", folder_.path().string());
    return false;
  }
  const checkpoint::Manifest& saved = latest.found->manifest;
  const std::string difference =
      checkpoint::manifestDifference(saved, manifestAt(checkpoint::Position{}));
  if (!difference.empty())
    throw Error(ErrorCode::kBadConfig,
                fmt::format("{} is a checkpoint of another model:\n{}\nGive this job another "
                            "run_dir, or remove {} to start anew",
                            latest.found->folder.string(), difference, folder_.path().string()));
  client_.restore(latest.found->folder.filename().string());
  run_seconds_before_ = saved.run_seconds;
  last_step_ = saved.global_step;
  log::info("event=restored checkpoint={} global_step={}", latest.found->folder.string(),
            saved.global_step);
  if (saved.seed != options_.data.seed || saved.data != dataText(options_.data))
    log::warning(
        "event=data_changed reason=\"the checkpoint was trained on {} with seed {}, now it "
        "is {} with seed {}\"",
        saved.data, saved.seed, dataText(options_.data), options_.data.seed);
  return true;
}

// ---- cut

void Checkpointer::startCut(uint64_t step) {
  cut_ = checkpoint::Position{std::min(step, declaration_.steps)};
  client_.startCut(*cut_);
}

// Tells the ps the furthest place that any of them is at, and `margin` steps on.
checkpoint::Position Checkpointer::startFurthestCut(Motion motion, uint64_t margin) {
  const std::vector<checkpoint::Position> positions =
      client_.positions(!isSync() && motion == Motion::kTraining);
  checkpoint::Position furthest = positions.at(0);
  for (const checkpoint::Position& position : positions)
    for (size_t i = 0; i < furthest.size(); ++i)
      furthest[i] = std::max(furthest[i], position.at(i));
  if (isSync()) furthest[0] = std::min(furthest[0] + margin, declaration_.steps);
  client_.startCut(furthest);
  return furthest;
}

checkpoint::Position Checkpointer::takeCut(Motion motion) {
  if (cut_) {
    const checkpoint::Position cut = *std::exchange(cut_, std::nullopt);
    if (client_.awaitCut()) return cut;
  }
  for (uint64_t margin = motion == Motion::kAtRest ? 0 : 1; margin <= kMarginMax;
       margin = std::max<uint64_t>(1, 2 * margin)) {
    const checkpoint::Position cut = startFurthestCut(motion, margin);
    if (client_.awaitCut()) return cut;
  }
  throw Error(ErrorCode::kUnavailable,
              "the ps went on faster than a checkpoint could be agreed on");
}

// ---- save

checkpoint::Manifest Checkpointer::manifestAt(const checkpoint::Position& position) const {
  checkpoint::Manifest manifest;
  manifest.job = options_.job;
  manifest.global_step = stepOf(position);
  manifest.seed = options_.data.seed;
  manifest.data = dataText(options_.data);
  manifest.worker_batches = position;
  if (isSync()) manifest.worker_batches.assign(options_.workers, manifest.global_step);
  manifest.optimizer = optimizerText(declaration_.optimizer);
  manifest.model_fingerprint = fmt::format("{:016x}", declaration_.layout.fingerprint());
  for (const ps::VariableInfo& variable : declaration_.layout.variables) {
    checkpoint::VariableInfo info{variable.name, variable.shape, {}};
    for (uint32_t i = 0; i < ps::slotCount(declaration_.optimizer); ++i)
      info.slots.push_back(ps::slotName(declaration_.optimizer, i));
    manifest.variables.push_back(std::move(info));
  }
  manifest.run_seconds = run_seconds_before_ + toSeconds(clock_.now() - started_);
  manifest.created = nowText();
  manifest.dtf_version = DTF_VERSION;
  return manifest;
}

SavedCheckpoint Checkpointer::write(const checkpoint::Position& position, TimePoint begin) {
  checkpoint::Manifest manifest = manifestAt(position);
  SavedCheckpoint result;
  result.global_step = manifest.global_step;
  const std::string attempt = folder_.beginAttempt(manifest.global_step);
  try {
    for (checkpoint::SavedShard& shard : client_.save(attempt)) {
      result.bytes += shard.file.bytes;
      result.stall_seconds = std::max(result.stall_seconds, shard.stall_seconds);
      manifest.clocks.push_back(shard.clock);
      manifest.shards.push_back(std::move(shard.file));
    }
    folder_.commit(manifest);
  } catch (const Error&) {
    folder_.abandon();
    throw;
  }
  last_step_ = manifest.global_step;
  result.seconds = toSeconds(clock_.now() - begin);
  return result;
}

std::optional<SavedCheckpoint> Checkpointer::save(Motion motion) {
  const TimePoint begin = clock_.now();
  const checkpoint::Position position = takeCut(motion);
  if (last_step_ == stepOf(position)) return std::nullopt;
  const SavedCheckpoint saved = write(position, begin);
  folder_.prune({options_.spec.keep, options_.spec.keep_every_hours});
  return saved;
}

}  // namespace dtf::train
