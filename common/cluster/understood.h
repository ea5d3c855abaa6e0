#pragma once

// The resolved file of a job, for the run directory: the train file is included, `--set` is
// applied, and defaults of some missing keys are filled in.

#include <string>

#include "common/cluster/spec.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::cluster {

// Returns the text of `root`, the tree that `job` was read from. The values of `env` are replaced:
// they may be secrets.
std::string understoodText(yaml::YamlNode root, const JobSpec& job);

}  // namespace dtf::cluster
