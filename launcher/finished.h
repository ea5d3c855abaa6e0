#pragma once

#include <optional>
#include <string>

#include "common/cluster/spec.h"
#include "launcher/options.h"

namespace dtf::launcher {

// Prints that the job of this run is done, and how to go on or begin anew, and returns the exit
// code. Nullopt: something is left to do, or something runs there.
// Blocks, errors: as train::findFinishedRun().
std::optional<int> answerFinished(const cluster::JobSpec& job, const Options& options);

// Whether two files of jobs as they were understood have the same tree under `train`. False where
// one of them has none, or can't be read.
bool trainsTheSame(const std::string& one, const std::string& other);

}  // namespace dtf::launcher
