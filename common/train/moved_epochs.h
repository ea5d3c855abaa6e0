#pragma once

// What becomes of the epochs of a job that goes on with other workers, batches or data than its
// checkpoint is of: the job goes on at its step, and an epoch has other steps.

#include <cstdint>
#include <string>

#include "common/checkpoint/manifest.h"

namespace dtf::train {

// A job with epochs, as it goes on.
struct EpochsOfJob {
  uint64_t epochs = 0;
  uint64_t steps = 0;
  uint64_t workers = 0;
  bool shares_steps = false;  // replication::sharesSteps()
};

// Returns the number of steps of the job that saved it; 0: it is not known.
uint64_t stepsOfSaved(const checkpoint::Manifest& saved);

// Returns which examples are used more or less often than once an epoch, for a person; empty: none
// are, or the checkpoint doesn't know its epochs.
std::string movedEpochsText(const checkpoint::Manifest& saved, const EpochsOfJob& job);

}  // namespace dtf::train
