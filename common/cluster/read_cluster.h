#pragma once

// A checked YAML tree of a CLUSTER.yaml, its train part already in place, -> JobSpec.

#include "common/cluster/spec.h"
#include "common/yaml/report.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::cluster {

// Mistakes go into the report; the result is only meaningful when there are none. `with_train`
// false: the train part could not be read (which the report says) and is left out.
JobSpec readJob(const yaml::YamlNode& root, bool with_train, yaml::Report& report);

}  // namespace dtf::cluster
