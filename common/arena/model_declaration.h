#pragma once

// The declaration of a job, on which all its workers must agree.

#include <cstdint>
#include <string>
#include <vector>

#include "common/arena/parameter_layout.h"
#include "common/cluster/spec.h"

namespace dtf::arena {

// A setting of a job: its name in TRAIN.yaml ("data.seed"), and its value as text.
struct Setting {
  std::string name;
  std::string value;
  bool operator==(const Setting&) const = default;
};

// The data of a job that trains on every example once an epoch (cluster/batch_plan.h). A ps weighs
// gradients by it.
struct EpochData {
  uint64_t examples = 0;    // 0: a job of whole batches
  uint64_t batch_size = 0;  // likewise
  bool operator==(const EpochData&) const = default;
};

// The declaration of each worker. Each ps compares the declarations, and refuses a worker that
// differs.
struct ModelDeclaration {
  ParameterLayout layout;
  cluster::OptimizerSpec optimizer;
  cluster::ReplicationSpec replication;  // replicas filled in: no zeros
  uint64_t steps = 0;                    // global steps until the job is done
  // Settings that a ps only compares: the model, the data, the seed, the batch size.
  std::vector<Setting> settings;
  EpochData epochs{};
  bool operator==(const ModelDeclaration&) const = default;
};

}  // namespace dtf::arena
