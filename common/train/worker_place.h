#pragma once

// The place of a worker in its cluster.

#include <cstdint>

#include "common/base/ids.h"
#include "common/cluster/spec.h"

namespace dtf::train {

// Value type.
struct WorkerPlace {
  uint32_t rank = 0;
  uint32_t workers = 1;
  uint32_t ps_tasks = 1;
  bool one_process = false;  // no ps: this process holds the parameters
  ShardHosts hosts{};        // the tasks that host the shards
};

inline WorkerPlace placeOf(const cluster::ClusterSpec& cluster, uint32_t rank) {
  const ShardHosts hosts = cluster.shardHosts();
  return {rank, static_cast<uint32_t>(cluster.worker.size()), hosts.size(), cluster.isOneProcess(),
          hosts};
}

}  // namespace dtf::train
