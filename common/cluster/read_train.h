#pragma once

// Converts the YAML tree of a TRAIN.yaml to a TrainSpec.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/cluster/spec.h"
#include "common/yaml/report.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::cluster {

struct TaskCounts {
  ShardHosts hosts;
  size_t worker = 0;
  bool one_process = false;              // the cluster has no ps: its only process has one inside
  std::vector<uint32_t> host_leaders{};  // see hostLeaders()
  // Whether workers host shards that others use, too.
  bool workersHost() const { return hosts.workers > 0 && !one_process; }
};

// Whether the train section of a file says `placement: {strategy: hybrid}`. Its mistakes are
// readTrain()'s to report.
bool isHybrid(const yaml::YamlNode& train);

// Checks pins and replica counts against `counts`, unless these are 0. Adds mistakes to the report;
// the result is only meaningful when there are none.
TrainSpec readTrain(const yaml::YamlNode& node, const TaskCounts& counts, yaml::Report& report);

// Parts of it.
DataSpec readData(const yaml::YamlNode* node, yaml::Report& report);  // null: the embedded digits
// `default_count`: of examples in a dataset that dtf draws.
DatasetSpec readDataset(const yaml::YamlNode& node, int64_t default_count, yaml::Report& report);
OptimizerSpec readOptimizer(const yaml::YamlNode& node, yaml::Report& report);

}  // namespace dtf::cluster
