#pragma once

// What the chief's checkpointer (common/train/checkpointer.h) is told of the job.

#include <cstdint>
#include <functional>
#include <vector>

#include "common/cluster/options.h"
#include "common/train/checkpointer.h"

namespace dtf::workerd {

// Whether the chief has more to do than to start: in a job without checkpoints, snapshots or
// replicas the loss of a ps is the end.
bool isSupervised(const cluster::JobSpec& job);

// Blocks, errors: as data::readSignature().
train::CheckpointerOptions checkpointerOptions(
    const cluster::TaskOptions& task, std::function<std::vector<uint64_t>()> keeps_also = nullptr);

}  // namespace dtf::workerd
