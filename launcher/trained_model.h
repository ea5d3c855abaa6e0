#pragma once

// What the verbs that use a trained model have in common.

#include "common/cluster/spec.h"
#include "common/train/kernel_choices.h"
#include "common/train/saved_model.h"
#include "launcher/options.h"

namespace dtf::launcher {

// What the job trains.
// Errors: kBadConfig when its file says nothing of that.
const cluster::TrainSpec& trainOf(const cluster::JobSpec& job);

// The model of options.checkpoint, the best one (options.best), or the newest of the job's run
// (find_run.h). Newer checkpoints that can't be used are named on stderr.
// Errors: those of findRun(), loadSavedModel() and readEvaluations(); kUsage for the best one of a
// job that keeps none.
train::SavedModel openTrainedModel(const cluster::JobSpec& job, const Options& options);

// The job's data to evaluate, read as those that the model was trained on. A checkpoint of dtf
// 0.1.0 doesn't say what these were: the job's training data do, where they are still there, and
// the names of the classes are compared. Errors: those of data::readAsTrained().
cluster::DatasetSpec evaluationSpec(const cluster::DataSpec& data, const train::SavedModel& model);

// Which way its kernels go: as those of the run that saved it, so that the numbers are the same.
train::KernelChoices savedChoices(const cluster::TrainSpec& train, const train::SavedModel& model);

}  // namespace dtf::launcher
