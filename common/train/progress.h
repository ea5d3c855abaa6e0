#pragma once

// The progress of a worker's training.

#include <cstdint>
#include <functional>
#include <optional>

#include "common/replication/phase_times.h"
#include "common/train/evaluation.h"
#include "common/train/step_times.h"

namespace dtf::train {

// Value type.
struct Progress {
  uint64_t global_step = 0;
  double loss = 0;                       // sync: mean of the last step's; async: this worker's last
  double examples_per_second = 0;        // of the whole job, since the last report
  double steps_per_second = 0;           // global steps
  std::optional<Evaluation> evaluation;  // of the parameters at global_step, if due
  uint64_t steps = 0;                    // of the job
  // Of this worker, since its process began:
  uint64_t batches = 0;
  uint64_t batches_stale = 0;  // too late for their step
  uint64_t examples = 0;       // of all batches
  StepTimes step_times{};      // from one batch's answer to the next, without evaluations
  replication::PhaseTimes phases_total{};
  replication::PhaseTimes phases{};  // the mean of its steps since the last report
  // Sync: the worker that the others wait for; nullopt: none stands out.
  std::optional<replication::Straggler> straggler{};
};
using ProgressCallback =
    std::function<void(const Progress&)>;  // called on the training thread; should be quick

}  // namespace dtf::train
