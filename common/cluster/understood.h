#pragma once

// The job's file as it was understood, for the run directory: with the train file that it names and
// `--set` in their places, and with the defaults of keys that it leaves out.

#include <string>

#include "common/cluster/spec.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::cluster {

// `root` is the tree that `job` was read from. The values of `env` are left out: they may be
// secrets.
std::string understoodText(yaml::YamlNode root, const JobSpec& job);

}  // namespace dtf::cluster
