#pragma once

// Whether `early_stopping` can end a job at all.

#include <cstdint>
#include <string>

#include "common/cluster/spec.h"
#include "common/yaml/report.h"

namespace dtf::train {

// Returns why the patience is too large for the evaluations that the job makes before its last
// step. Empty: it isn't, or the job has no early_stopping. `examples`: of the training data; 0: not
// known, so neither is the number of steps in a job of `epochs`.
// Errors: as stepsOf().
std::string patienceFault(const cluster::TrainSpec& train, int64_t examples, uint32_t workers);

// Puts it into `report`, at its line, as a warning.
void warnOfPatience(const cluster::JobSpec& job, int64_t examples, yaml::Report& report);

}  // namespace dtf::train
