#pragma once

// The command line of the two daemons, psd and workerd.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/log.h"
#include "common/cluster/spec.h"

namespace dtf::cluster {

struct TaskOptions {
  // Output of --help, --help-config or --version, for stdout and exit code 0; the other members are
  // then not set.
  std::optional<std::string> answer;

  TaskId task;
  std::filesystem::path cluster_file;  // empty: the job comes from flags
  JobSpec job;  // run_dir: --run-dir, if given; of a worker that doesn't serve: with `train`
  // The chief starts anew and sets existing checkpoints aside; other workers don't read them.
  bool fresh = false;
  // Port of /metrics, /healthz and /readyz; 0: the kernel chooses. None: no HTTP server.
  std::optional<uint16_t> metrics_port;
  bool serves = false;  // no job: runs parts of graphs for clients until a signal
  log::Level log_level = log::Level::kInfo;
  // Number of this start of the task, counted by its supervisor from 1; 0: not counted.
  uint32_t attempt = 0;
  // ps: ranks of the workers that had finished, as far as the supervisor knows, before this process
  // started. The ps doesn't wait for them.
  std::vector<uint32_t> finished_workers{};
  // Chief: the last step that earlier processes of the chief reported; see replication::ChiefState.
  std::optional<uint64_t> reached_step{};
};

// Parses the command line of the program for `binary` tasks. The job comes from --cluster with
// --task, or from TensorFlow's flags: --ps-hosts and --worker-hosts with --task-index. What neither
// names, the cluster or the task, comes from TF_CONFIG (tf_config.h). Every address must have a
// port: only dtf-launch resolves `auto`.
// Errors: kUsage, in one line, for the command line; kBadConfig for the files, for --set and for
// TF_CONFIG.
TaskOptions parseTaskCommandLine(int argc, const char* const* argv, JobKind binary);

}  // namespace dtf::cluster
