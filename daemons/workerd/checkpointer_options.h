#pragma once

// The options of the chief's checkpointer and supervisor (common/train/checkpointer.h,
// supervisor.h).

#include <cstdint>
#include <functional>
#include <vector>

#include "common/cluster/options.h"
#include "common/train/checkpointer.h"
#include "common/train/supervisor.h"

namespace dtf::workerd {

// Returns whether the job keeps checkpoints, snapshots or replicas. Without them the loss of a ps
// ends the job.
bool isSupervised(const cluster::JobSpec& job);

// Blocks, errors: as data::readSignature().
train::CheckpointerOptions checkpointerOptions(
    const cluster::TaskOptions& task, std::function<std::vector<uint64_t>()> keeps_also = nullptr);

train::SaveSchedule saveScheduleOf(const cluster::JobSpec& job);

}  // namespace dtf::workerd
