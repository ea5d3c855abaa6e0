#pragma once

// The steps of one worker: a program is of one number of examples, and not all batches of a job
// have equally many. The last of an epoch has what remains (cluster/batch_plan.h).

#include <cstdint>
#include <span>
#include <vector>

#include "common/cluster/spec.h"
#include "common/train/device_variables.h"
#include "common/train/tower_group.h"
#include "common/train/worker_place.h"

namespace dtf::train {

// Owns: a group of towers for each number of examples, with all that they compute in.
// Borrows: what TowerGroup borrows.
// Threads, Blocks: as TowerGroup.
// Errors: those of shareOf(), trainingGraphOf(), placeModel() and ModelStep, from the constructor.
class BatchPrograms {
 public:
  // `counts`: of the examples of the batches, the largest first. `kept`: null: the variables come
  // from the client.
  BatchPrograms(const cluster::TrainSpec& train, const WorkerPlace& place,
                const TowerDevices& devices, const DeviceVariables* kept,
                std::span<const int64_t> counts);

  // For a batch of `count` examples, one of the counts (DTF_CHECK).
  TowerGroup& of(int64_t count);

  // Of the largest batch.
  const runtime::StepPlan& plan() const { return groups_.front().plan(); }

 private:
  std::vector<TowerGroup> groups_;
};

}  // namespace dtf::train
