#pragma once

// Finds whether a run has finished its job, by its newest checkpoint. dtf-launch asks before it
// starts the job again.

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/file_system.h"
#include "common/cluster/spec.h"

namespace dtf::train {

// Value type.
struct FinishedRun {
  uint64_t step = 0;
  std::string saved;      // creation time in the checkpoint
  std::string early;      // why early stopping ends the job; empty: it doesn't
  bool is_whole = false;  // all steps are done
};

// Reads the newest whole checkpoint in <job.run_dir>/checkpoints. Returns nullopt if the job has
// steps left, or if only its tasks can tell: the checkpoint is of another model, optimizer or data,
// its shards are on other hosts, or the number of steps of the epochs is unknown.
// Blocks: on the disk: reads every byte of the checkpoint.
// Errors: kPermission if this user may not read the checkpoint; as readEvaluations() and
// data::readSignature().
std::optional<FinishedRun> findFinishedRun(FileSystem& file_system, const cluster::JobSpec& job);

// Returns "done already at step 1000 (2026-03-01T10:11:12.345+01:00): nothing to do; --fresh begins
// anew, --set train.steps=2000 goes on". For units of systemd, which have no --fresh, it names
// another way to begin anew.
std::string finishedText(const cluster::JobSpec& job, const FinishedRun& run);

}  // namespace dtf::train
