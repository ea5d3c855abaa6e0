#pragma once

// The training steps of one worker. A program is compiled for one number of examples, and batches
// may differ in theirs: the last batch of an epoch has the remaining examples
// (cluster/batch_plan.h).

#include <cstdint>
#include <span>
#include <vector>

#include "common/cluster/spec.h"
#include "common/train/device_variables.h"
#include "common/train/tower_group.h"
#include "common/train/worker_place.h"

namespace dtf::train {

// Owns: a group of towers for each batch size, with its memory.
// Borrows: as TowerGroup.
// Threads, Blocks: as TowerGroup.
// Errors: the constructor's, as shareOf(), trainingGraphOf(), placeModel() and ModelStep.
class BatchPrograms {
 public:
  // `counts`: the batch sizes, largest first. `kept`: the variables that the devices keep; null if
  // they come from the client.
  BatchPrograms(const cluster::TrainSpec& train, const WorkerPlace& place,
                const TowerDevices& devices, const DeviceVariables* kept,
                std::span<const int64_t> counts);

  // Returns the towers for a batch of `count` examples, one of the counts (DTF_CHECK).
  TowerGroup& of(int64_t count);

  // Returns the plan of the step for the largest batch.
  const runtime::StepPlan& plan() const { return groups_.front().plan(); }

 private:
  std::vector<TowerGroup> groups_;
};

}  // namespace dtf::train
