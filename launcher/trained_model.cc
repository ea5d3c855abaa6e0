#include "launcher/trained_model.h"

#include <fmt/core.h>
#include <unistd.h>

#include "common/base/error.h"
#include "common/data/open_dataset.h"
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

}  // namespace

const cluster::TrainSpec& trainOf(const cluster::JobSpec& job) {
  if (job.train) return *job.train;
  throw yaml::ErrorAt(
      ErrorCode::kBadConfig, job.mark,
      "missing key 'train': a TRAIN.yaml, relative to this file, or its keys in place");
}

train::SavedModel openTrainedModel(const cluster::JobSpec& job, const Options& options) {
  train::SavedModel model =
      train::loadSavedModel(realFileSystem(), findRun(job, options).folder / "checkpoints",
                            options.checkpoint, trainOf(job).model);
  warnAboutRejected(model);
  return model;
}

void checkClassNames(const train::SavedModel& model, const cluster::DatasetSpec& data) {
  const std::string folder = data.image_folder.folder.path.string();
  const std::string difference = train::classDifference(model.class_names, data::classNames(data),
                                                        folder.empty() ? "the job's data" : folder);
  if (!difference.empty())
    throw Error(ErrorCode::kBadData, fmt::format("{} is of a model with other classes:\n{}",
                                                 model.checkpoint.string(), difference));
}

train::KernelChoices savedChoices(const cluster::TrainSpec& train, const train::SavedModel& model) {
  // RUN/checkpoints/step-N, as a person may have written it: from inside, or with a / behind it.
  std::filesystem::path checkpoint = std::filesystem::absolute(model.checkpoint).lexically_normal();
  if (!checkpoint.has_filename()) checkpoint = checkpoint.parent_path();
  return {train.kernels, checkpoint.parent_path().parent_path(),
          train::KernelChoices::Absent::kTable};
}

}  // namespace dtf::launcher
