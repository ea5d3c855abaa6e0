#pragma once

// What the chief says about the job: to its launcher, or, started by hand, on stdout and in
// summary.json.

#include <cstdint>
#include <optional>

#include "common/cluster/options.h"
#include "common/train/training_loop.h"

namespace dtf::workerd {

// The notify line "progress". Nothing without a launcher.
void reportProgress(const train::Progress& progress, uint64_t steps);

// The notify line "result"; without a launcher results on stdout and <run_dir>/summary.json
// (README.md, "What a run leaves"). Errors: kCannotWrite.
void reportResult(const cluster::TaskOptions& task, const train::TrainingResult& result,
                  const std::optional<train::Evaluation>& evaluation, uint64_t parameters_digest,
                  double wall_seconds);

}  // namespace dtf::workerd
