#pragma once

// What the verbs that use a trained model have in common.

#include "common/cluster/spec.h"
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

}  // namespace dtf::launcher
