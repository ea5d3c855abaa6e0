#include "launcher/trained_model.h"

#include <fmt/core.h>
#include <unistd.h>

#include "common/base/error.h"
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

}  // namespace dtf::launcher
