#include "common/train/finished_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "common/base/ids.h"
#include "common/checkpoint/checkpoint_folder.h"
#include "common/data/data_files.h"
#include "common/data/read_signature.h"
#include "common/model/model_text.h"
#include "common/train/checkpointer.h"
#include "common/train/evaluation_history.h"
#include "common/train/moved_epochs.h"
#include "common/train/saved_preparation.h"
#include "common/train/saved_signature.h"

namespace dtf::train {

namespace {

std::string savedText(const checkpoint::Manifest& manifest, const char* key) {
  const auto found = manifest.extra.find(key);
  return found == manifest.extra.end() ? "" : found->second;
}

// Returns the number of steps of `job`; 0 if unknown. With epochs it is the saved number, if the
// epochs and the number of workers are the same.
uint64_t stepsOf(const cluster::JobSpec& job, const checkpoint::Manifest& manifest) {
  const cluster::TrainSpec& train = *job.train;
  if (train.epochs == 0) return train.steps;
  const bool is_same = savedText(manifest, kEpochsKey) == std::to_string(train.epochs) &&
                       manifest.worker_batches.size() == job.cluster.worker.size();
  return is_same ? stepsOfSaved(manifest) : 0;
}

// Returns whether the tasks would resume from the checkpoint.
bool isOfJob(const checkpoint::Manifest& saved, const cluster::JobSpec& job) {
  const cluster::TrainSpec& train = *job.train;
  if (saved.job != job.job || savedText(saved, kModelKey) != model::modelText(train.model) ||
      saved.optimizer != optimizerText(train.optimizer))
    return false;
  return !data::missingPath(train.data.train).empty() ||
         meaningDifference(
             saved, data::readSignature(withSavedPreparation(saved, train.data.train)), "the data")
             .empty();
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

std::string finishedText(const cluster::JobSpec& job, const FinishedRun& run) {
  const cluster::TrainSpec& train = job.train.value();
  const bool are_units = job.launch.via == cluster::LaunchSpec::Via::kSystemd;
  const std::string early = run.early.empty() ? "" : fmt::format(", as {}", run.early);
  std::string more;
  if (!run.early.empty())
    more = fmt::format("train.early_stopping.patience={}", 2 * train.early_stopping->patience);
  if (run.is_whole)
    more += (more.empty() ? "" : " --set ") +
            (train.epochs > 0 ? fmt::format("train.epochs={}", 2 * train.epochs)
                              : fmt::format("train.steps={}", 2 * std::max(run.step, train.steps)));
  const std::string beyond = train.steps > 0 && run.step > train.steps
                                 ? fmt::format(", beyond the {} of this file", train.steps)
                                 : "";
  return fmt::format(
      "done already at step {}{}{} ({}): nothing to do; {} begins anew, --set {} goes on", run.step,
      beyond, early, run.saved, are_units ? "another --run-dir" : "--fresh", more);
}

}  // namespace dtf::train
