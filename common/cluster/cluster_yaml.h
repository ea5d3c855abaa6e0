#pragma once

// CLUSTER.yaml, TRAIN.yaml and `--set` to the value types of spec.h. Everything is checked and
// every mistake is reported at once, in compiler form with the source line; nothing that is written
// is ever ignored.

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "common/cluster/spec.h"
#include "common/yaml/report.h"

namespace dtf::cluster {

// Limits: a file is at most 1 MiB, 32 levels deep and 100 000 values with aliases expanded; a job
// has at most 1024 tasks of a kind.
//
// Each override is "key.path=value", applied to the tree before it is checked: the value is YAML,
// an element of a list is named by its index ("cluster.ps.0=127.0.0.1:4567"; one past the end
// appends), the keys of an included train file are below "train" ("train.steps=50"). Paths in an
// override are relative to the working directory, those in a file to that file; `run_dir` is always
// relative to the working directory.
//
// Errors (all functions): one dtf::Error(kBadConfig) whose message is the whole report, at most 20
// mistakes of it.

// Where something stands in the files that only whoever starts the job looks after: tasks aren't
// told. Value type.
struct JobMarks {
  yaml::Mark keys;  // its folder
};

// A whole job, with the train file that it names. kUsage for an empty `file`.
JobSpec loadCluster(const std::filesystem::path& file, std::span<const std::string> overrides);
// The same with the files kept in `report`, which is empty before: for what is found out about the
// job later, and for warnings.
JobSpec loadCluster(const std::filesystem::path& file, std::span<const std::string> overrides,
                    yaml::Report& report, JobMarks* marks = nullptr);

// The job that TensorFlow's flags describe: hosts as comma-separated "host:port". Overrides are as
// for loadCluster.
JobSpec jobFromHosts(const std::string& ps_hosts, const std::string& worker_hosts,
                     const std::optional<std::filesystem::path>& train_file,
                     std::span<const std::string> overrides);

}  // namespace dtf::cluster
