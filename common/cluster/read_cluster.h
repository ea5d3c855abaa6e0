#pragma once

// Converts the YAML tree of a CLUSTER.yaml, with its train part included, to a JobSpec.

#include <string>
#include <string_view>

#include "common/base/ids.h"
#include "common/cluster/spec.h"
#include "common/yaml/report.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::cluster {

// Returns why a task of `job` can't have the device, "cpu:1"; empty: it can.
std::string deviceMistake(std::string_view device, JobKind job);

// Adds mistakes to the report; the result is only meaningful when there are none. `with_train`
// false: the train part could not be read (which is reported already) and is left out.
JobSpec readJob(const yaml::YamlNode& root, bool with_train, yaml::Report& report);

}  // namespace dtf::cluster
