#pragma once

// What the chief says about the job: to its launcher, or, started by hand, on stdout and in
// summary.json.

#include <cstdint>
#include <optional>

#include "common/cluster/options.h"
#include "common/summary/event_writer.h"
#include "common/train/supervisor.h"
#include "common/train/training_loop.h"

namespace dtf::workerd {

// The notify line "progress". Nothing without a launcher.
void reportProgress(const train::Progress& progress, uint64_t steps);

// The notify lines "checkpoint" and, for the log, event=checkpoint.
void reportCheckpoint(const train::SavedCheckpoint& saved);

struct JobResult {
  train::TrainingResult training;
  std::optional<train::Evaluation> evaluation;
  std::optional<train::CheckpointStatus> checkpoints;   // none: the job keeps none
  std::optional<summary::EventWriterStatus> summaries;  // none: the job writes none
  uint64_t parameters_digest = 0;
  double wall_seconds = 0;
};

// The notify line "result"; without a launcher results on stdout and <run_dir>/summary.json
// (README.md, "What a run leaves"). Errors: kCannotWrite.
void reportResult(const cluster::TaskOptions& task, const JobResult& result);

}  // namespace dtf::workerd
