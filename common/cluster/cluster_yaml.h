#pragma once

// Reads CLUSTER.yaml, TRAIN.yaml and `--set` into the value types of spec.h. Reports all mistakes
// at once, in compiler form with the source line. An unknown key is a mistake, too.

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
// Each override is "key.path=value", applied to the tree before it is checked:
// - the value is YAML,
// - an index names an element of a list ("cluster.ps.0=127.0.0.1:4567"; one past the end appends),
// - the keys of an included train file are below "train" ("train.steps=50").
// A path in an override is relative to the working directory, a path in a file to that file;
// `run_dir` is always relative to the working directory.
//
// Errors (all functions): one dtf::Error(kBadConfig) whose message is the whole report, at most 20
// mistakes of it.

// Places in the files that only dtf-launch needs, so they are not part of the JobSpec. Value type.
struct JobMarks {
  yaml::Mark keys;  // of `keys:`
};

// Returns whether the file has the key `cluster`; a file that can't be read counts as one that has,
// so that loadCluster() reports why.
bool namesCluster(const std::filesystem::path& file);

// Loads a whole job, with the train file that it names. A TRAIN.yaml in the place of `file` is a
// job in one process. kUsage for an empty `file`.
JobSpec loadCluster(const std::filesystem::path& file, std::span<const std::string> overrides);
// Does the same and keeps the files in `report`, which must be empty: for warnings, and for
// mistakes that are found later.
JobSpec loadCluster(const std::filesystem::path& file, std::span<const std::string> overrides,
                    yaml::Report& report, JobMarks* marks = nullptr);

// The same of a text that is to become `file`, which need not be there.
JobSpec loadClusterText(const std::filesystem::path& file, const std::string& text,
                        yaml::Report& report);

// The job that TensorFlow's flags describe: hosts as comma-separated "host:port"; without
// `ps_hosts` the workers host the parameters. Overrides are as for loadCluster.
JobSpec jobFromHosts(const std::optional<std::string>& ps_hosts, const std::string& worker_hosts,
                     const std::optional<std::filesystem::path>& train_file,
                     std::span<const std::string> overrides);

}  // namespace dtf::cluster
