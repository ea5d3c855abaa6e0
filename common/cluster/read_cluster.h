#pragma once

// Converts the YAML tree of a CLUSTER.yaml, with its train part included, to a JobSpec.

#include "common/cluster/spec.h"
#include "common/yaml/report.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::cluster {

// Adds mistakes to the report; the result is only meaningful when there are none. `with_train`
// false: the train part could not be read (which is reported already) and is left out.
JobSpec readJob(const yaml::YamlNode& root, bool with_train, yaml::Report& report);

}  // namespace dtf::cluster
