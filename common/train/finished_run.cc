#include "common/train/finished_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "common/base/ids.h"
#include "common/base/text.h"
#include "common/checkpoint/checkpoint_folder.h"
#include "common/data/data_files.h"
#include "common/data/read_signature.h"
#include "common/model/model_text.h"
#include "common/train/checkpointer.h"
#include "common/train/evaluation_history.h"
#include "common/train/saved_signature.h"

namespace dtf::train {

namespace {

std::string extraOf(const checkpoint::Manifest& manifest, const char* key) {
  const auto found = manifest.extra.find(key);
  return found == manifest.extra.end() ? "" : found->second;
}

// The number of steps of the job that saved it; 0: it is not known.
uint64_t stepsOfSaved(const checkpoint::Manifest& manifest) {
  constexpr std::string_view kSteps = "steps=";
  for (const std::string& line : split(extraOf(manifest, kSettingsKey), '\n')) {
    if (!line.starts_with(kSteps)) continue;
    uint64_t steps = 0;
    const char* const end = line.data() + line.size();
    const auto read = std::from_chars(line.data() + kSteps.size(), end, steps);
    return read.ptr == end ? steps : 0;
  }
  return 0;
}

// Epochs are so many steps for the same number of workers; 0: it is not known.
uint64_t stepsOf(const cluster::JobSpec& job, const checkpoint::Manifest& manifest) {
  const cluster::TrainSpec& train = *job.train;
  if (train.epochs == 0) return train.steps;
  const bool is_same = extraOf(manifest, kEpochsKey) == std::to_string(train.epochs) &&
                       manifest.worker_batches.size() == job.cluster.worker.size();
  return is_same ? stepsOfSaved(manifest) : 0;
}

// Nothing that the tasks would refuse to go on with.
bool isOfJob(const checkpoint::Manifest& saved, const cluster::JobSpec& job) {
  const cluster::TrainSpec& train = *job.train;
  if (saved.job != job.job || extraOf(saved, kModelKey) != model::modelText(train.model) ||
      saved.optimizer != optimizerText(train.optimizer))
    return false;
  return !data::missingPath(train.data.train).empty() ||
         meaningDifference(saved, data::readSignature(train.data.train), "the data").empty();
}

std::string earlyEndOf(const cluster::JobSpec& job, uint64_t step) {
  if (!job.train->early_stopping) return "";
  std::vector<PastEvaluation> history = readEvaluations(job.run_dir / "checkpoints");
  std::erase_if(history, [step](const PastEvaluation& past) { return past.step > step; });
  return earlyStopReason(history, *job.train->early_stopping);
}

}  // namespace

std::optional<FinishedRun> findFinishedRun(FileSystem& file_system, const cluster::JobSpec& job) {
  if (!job.train || !job.train->checkpoint || job.train->checkpoint->stay) return std::nullopt;
  checkpoint::CheckpointFolder folder(file_system, job.run_dir / "checkpoints",
                                      Incarnation::ofNow());
  const checkpoint::Latest latest = folder.latestValid();
  if (!latest.found || !latest.rejected.empty()) return std::nullopt;
  const checkpoint::Manifest& saved = latest.found->manifest;
  if (!isOfJob(saved, job)) return std::nullopt;
  const uint64_t steps = stepsOf(job, saved);
  const bool is_whole = steps > 0 && saved.global_step >= steps;
  const std::string early = earlyEndOf(job, saved.global_step);
  if (!is_whole && early.empty()) return std::nullopt;
  return FinishedRun{saved.global_step, saved.created, early, is_whole};
}

std::string finishedText(const cluster::TrainSpec& train, const FinishedRun& run) {
  const std::string early = run.early.empty() ? "" : fmt::format(", as {}", run.early);
  std::string more;
  if (!run.early.empty())
    more = fmt::format("train.early_stopping.patience={}", 2 * train.early_stopping->patience);
  if (run.is_whole)
    more += (more.empty() ? "" : " --set ") +
            (train.epochs > 0 ? fmt::format("train.epochs={}", 2 * train.epochs)
                              : fmt::format("train.steps={}", 2 * std::max(run.step, train.steps)));
  return fmt::format(
      "done already at step {}{} ({}): nothing to do; --fresh begins anew, --set {} "
      "goes on",
      run.step, early, run.saved, more);
}

}  // namespace dtf::train
