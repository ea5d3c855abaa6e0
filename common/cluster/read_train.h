#pragma once

// A checked YAML tree -> TrainSpec.

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/cluster/spec.h"
#include "common/yaml/report.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::cluster {

struct TaskCounts {
  size_t ps = 0;
  size_t worker = 0;
  bool one_process = false;  // the cluster has no ps: `ps` is the one in its only process
};

// Pins and replica counts are checked against `counts`, where it has such tasks. Mistakes go
// into the report; the result is only meaningful when there are none.
TrainSpec readTrain(const yaml::YamlNode& node, const TaskCounts& counts, yaml::Report& report);

// The parts, each in its own file or too long for one.
DataSpec readData(const yaml::YamlNode* node, yaml::Report& report);  // null: the embedded digits
// One set of examples; `default_count`: of those that are drawn.
DatasetSpec readDataset(const yaml::YamlNode& node, int64_t default_count, yaml::Report& report);
OptimizerSpec readOptimizer(const yaml::YamlNode& node, yaml::Report& report);

}  // namespace dtf::cluster
