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

// The model of options.checkpoint, or the newest of the job's run (find_run.h). Newer checkpoints that
// can't be used are named on stderr.
// Errors: those of findRun() and loadSavedModel().
train::SavedModel openTrainedModel(const cluster::JobSpec& job, const Options& options);

// What the classes of the training data are called now must be what they were called.
// Errors: kBadData with the first class that differs.
void checkClassNames(const train::SavedModel& model, const cluster::DatasetSpec& data);

// Which way its kernels go: as those of the run that saved it, so that the numbers are the same.
train::KernelChoices savedChoices(const cluster::TrainSpec& train, const train::SavedModel& model);

}  // namespace dtf::launcher
