#pragma once

// How many global steps a job has.

#include <cstdint>

#include "common/cluster/spec.h"

namespace dtf::train {

// TrainSpec::steps, or as many as its epochs take with so many examples: an epoch is the whole batches
// of the data, which the workers share. The last step may begin another epoch.
// Errors: kBadConfig when one epoch has no batch.
uint64_t stepsOf(const cluster::TrainSpec& train, int64_t examples, uint32_t workers);

}  // namespace dtf::train
