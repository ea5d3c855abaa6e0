#include "launcher/trained_model.h"

#include <fmt/core.h>
#include <unistd.h>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/data/data_files.h"
#include "common/data/read_signature.h"
#include "common/train/evaluation_history.h"
#include "common/yaml/error_at.h"
#include "launcher/find_run.h"
#include "launcher/output.h"

namespace dtf::launcher {

namespace {

// Beside a result that is there.
void warnAboutRejected(const train::SavedModel& model) {
  for (const checkpoint::Rejected& one : model.rejected)
    printBounded(STDERR_FILENO,
                 fmt::format("dtf-launch: warning: the checkpoint of step {} can't be used: {}\n",
                             one.step, one.problems.at(0).reason));
}

// Whether the job's file still names the targets that the model was trained on; the evaluation may
// have them under other names.
bool learnsTheSame(const cluster::DatasetSpec& train, const data::DataSignature& model) {
  std::vector<std::string> named = train.csv.targets;
  if (!train.csv.label.empty()) named = {train.csv.label};
  return data::trainedColumns(model).targets == named;
}

// Beside the newest checkpoint, where --best would take another one. A history that can't be read
// is the concern of --best.
void warnAboutBetter(const cluster::TrainSpec& train, const std::filesystem::path& checkpoints,
                     uint64_t newest) {
  const std::string metric = train.checkpoint ? train.checkpoint->keep_best : "";
  if (metric.empty()) return;
  try {
    std::vector<train::PastEvaluation> history = train::readEvaluations(checkpoints);
    train::forgetLostCheckpoints(checkpoints, history);
    const train::PastEvaluation* const best = train::bestCheckpoint(history, metric);
    if (best != nullptr && *best->checkpoint != newest)
      printBounded(
          STDERR_FILENO,
          fmt::format("dtf-launch: checkpoint step {} (newest); --best would take step {}\n",
                      newest, *best->checkpoint));
  } catch (const Error&) {
  }
}

// Names the checkpoint that was found for a user who has named none. eval names it in its result.
void nameChosen(const Options& options, const train::SavedModel& model) {
  const bool is_named = options.run_dir || !options.checkpoint.empty();
  if (is_named || options.verbosity == Verbosity::kQuiet || options.verb == Verb::kEval) return;
  printBounded(STDERR_FILENO, fmt::format("dtf-launch: using checkpoint {}\n",
                                          printable(model.checkpoint.string())));
}

// The step of the checkpoint whose evaluation was the best.
std::string bestOf(const cluster::TrainSpec& train, const std::filesystem::path& checkpoints) {
  const std::string metric = train.checkpoint ? train.checkpoint->keep_best : "";
  if (metric.empty())
    throw Error(ErrorCode::kUsage,
                "--best: the job keeps no best checkpoint: add checkpoint: {keep_best: METRIC} to "
                "'train', and train");
  std::vector<train::PastEvaluation> history = train::readEvaluations(checkpoints);
  train::forgetLostCheckpoints(checkpoints, history);
  const train::PastEvaluation* const best = train::bestCheckpoint(history, metric);
  if (best == nullptr)
    throw Error(ErrorCode::kBadData,
                fmt::format("--best: no evaluation of {} has a checkpoint in {} yet; without "
                            "--best the newest one is used",
                            metric, checkpoints.string()));
  return std::to_string(*best->checkpoint);
}

}  // namespace

const cluster::TrainSpec& trainOf(const cluster::JobSpec& job) {
  if (job.train) return *job.train;
  throw yaml::ErrorAt(
      ErrorCode::kBadConfig, job.mark,
      "missing key 'train': a TRAIN.yaml, relative to this file, or its keys in place");
}

train::SavedModel openTrainedModel(const cluster::JobSpec& job, const Options& options) {
  const FoundRun run = findRun(job, options);
  const std::filesystem::path checkpoints = run.folder / "checkpoints";
  if (!run.other_file.empty() && options.checkpoint.empty())
    printBounded(STDERR_FILENO, "dtf-launch: " + printable(otherFileText(run)) + "\n");
  const cluster::TrainSpec& train = trainOf(job);
  train::SavedModel model = train::loadSavedModel(
      realFileSystem(), checkpoints, options.best ? bestOf(train, checkpoints) : options.checkpoint,
      train.model, &train.data.train);
  warnAboutRejected(model);
  nameChosen(options, model);
  if (!options.best && options.checkpoint.empty()) warnAboutBetter(train, checkpoints, model.step);
  return model;
}

cluster::DatasetSpec evaluationSpec(const cluster::DataSpec& data, const train::SavedModel& model) {
  const cluster::DatasetSpec& eval = data.eval.value();
  if (model.signature)
    return data::readAsTrained(eval, learnsTheSame(data.train, *model.signature)
                                         ? data::withTargetsOf(eval, *model.signature)
                                         : *model.signature);
  const bool is_there = data::missingPath(data.train).empty();
  cluster::DatasetSpec read = is_there ? data::readAsTrained(eval, data.train) : eval;
  if (model.class_names.empty()) return read;
  data::DataSignature classes = data::readSignature(read);
  for (data::PartSignature& target : classes.targets)
    target.preparation = {{{"op", "vocabulary"}, {"words", model.class_names}}};
  return data::classWords(data::readSignature(read)).empty() ? read
                                                             : data::readAsTrained(read, classes);
}

train::KernelChoices savedChoices(const cluster::TrainSpec& train, const train::SavedModel& model) {
  // RUN/checkpoints/step-N, as a person may have written it: from inside, or with a / behind it.
  std::filesystem::path checkpoint = std::filesystem::absolute(model.checkpoint).lexically_normal();
  if (!checkpoint.has_filename()) checkpoint = checkpoint.parent_path();
  return {train.kernels, checkpoint.parent_path().parent_path(),
          train::KernelChoices::Absent::kTable};
}

}  // namespace dtf::launcher
