#pragma once

// Whether a run has come to the end of its job, by its newest checkpoint: for whoever would start
// the job again.

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/file_system.h"
#include "common/cluster/spec.h"

namespace dtf::train {

// Value type.
struct FinishedRun {
  uint64_t step = 0;
  std::string saved;      // wall clock, as the checkpoint has it
  std::string early;      // why its evaluations end the job; empty: they don't
  bool is_whole = false;  // it has made all steps
};

// Looks at the newest whole checkpoint in <job.run_dir>/checkpoints. Nullopt: the job has something
// left to train, or only its tasks can find out: the checkpoint is of another model, optimizer or
// data, its shards are elsewhere, or how many steps the epochs take is not known.
// Blocks: on the disk: reads every byte of the checkpoint.
// Errors: kPermission for a checkpoint that this user may not read; those of readEvaluations() and
// data::readSignature().
std::optional<FinishedRun> findFinishedRun(FileSystem& file_system, const cluster::JobSpec& job);

// "done already at step 1000 (2026-03-01T10:11:12.345+01:00): nothing to do; --fresh begins anew,
// --set train.steps=2000 goes on"
std::string finishedText(const cluster::TrainSpec& train, const FinishedRun& run);

}  // namespace dtf::train
