#pragma once

// Reads `replication:` of a job.

#include "common/cluster/read_train.h"
#include "common/cluster/spec.h"
#include "common/yaml/report.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::cluster {

// Returns the replication of a job without the key. Workers that host the shards are equal: they
// train in step with each other.
ReplicationSpec defaultReplication(const TaskCounts& counts);
// Mistakes go to `report`.
ReplicationSpec readReplication(const yaml::YamlNode& node, const TaskCounts& counts,
                                yaml::Report& report);

}  // namespace dtf::cluster
