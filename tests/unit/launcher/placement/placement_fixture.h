#pragma once

// Jobs with `placement: auto`.

#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/cluster/cluster_yaml.h"
#include "launcher/placement/placement_choice.h"
#include "tests/support/temporary_files.h"

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

// Reads a job's text again with overrides.
inline JobReader readerOf(const std::string& text) {
  return [text](const std::vector<std::string>& overrides) -> ReadJob {
    const testing::TemporaryFiles folder;
    folder.write("job.yaml", text);
    try {
      return {cluster::loadCluster("job.yaml", overrides)};
    } catch (const Error& error) {
      return {std::nullopt, error.message()};
    }
  };
}

// Two ps and two workers, each on a host of its own.
inline constexpr const char* kApart =
    "{ps: ['10.0.0.1:1', '10.0.0.2:1'], worker: ['10.0.0.3:1', '10.0.0.4:1']}";
inline const std::string kSyncAuto = "  replication: {mode: sync}\n  placement: auto\n";

}  // namespace dtf::launcher
