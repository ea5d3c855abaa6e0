#pragma once

// Jobs with `placement: auto`.

#include <string>

#include "common/cluster/cluster_yaml.h"

namespace dtf::launcher {

// `train`, `more`: further keys of the two files.
inline std::string jobText(const std::string& cluster, const std::string& train,
                           const std::string& more = "") {
  return "job: j\ninsecure: true\ncluster: " + cluster + "\n" + more +
         "train:\n  model: {input: {shape: [784]}, layers: [dense: {units: 1000}], loss: mse}\n"
         "  data: {train: {format: digits, count: 100}}\n" +
         train;
}

inline cluster::JobSpec jobOf(const std::string& cluster, const std::string& train,
                              const std::string& more = "") {
  yaml::Report report;
  return cluster::loadClusterText("job.yaml", jobText(cluster, train, more), report);
}

// Two ps and two workers, each on a host of its own.
inline constexpr const char* kApart =
    "{ps: ['10.0.0.1:1', '10.0.0.2:1'], worker: ['10.0.0.3:1', '10.0.0.4:1']}";
inline const std::string kSyncAuto = "  replication: {mode: sync}\n  placement: auto\n";

}  // namespace dtf::launcher
