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
  // --help, --help-config or --version: write this to stdout and exit 0; the other members are not
  // set.
  std::optional<std::string> answer;

  TaskId task;
  std::filesystem::path cluster_file;  // empty: the job comes from flags
  JobSpec job;  // run_dir is --run-dir when that is given; a worker's has `train`, unless it serves
  bool fresh = false;  // a chief's: start anew, with what checkpoints there are set aside
  // Where it answers over HTTP: /metrics, /healthz, /readyz; 0: the kernel chooses. None: it
  // doesn't.
  std::optional<uint16_t> metrics_port;
  bool serves = false;  // no job: it runs parts of graphs for clients, until it is ended
  log::Level log_level = log::Level::kInfo;
  // Which start of this task this is, counted by whoever starts it, 1 for the first; 0: nobody
  // counts.
  uint32_t attempt = 0;
  // A ps's: the ranks of the workers that had finished before this process of it was started, as
  // far as whoever starts it knows. They are not waited for.
  std::vector<uint32_t> finished_workers{};
  // A chief's: the last step that the processes of it before this one have reported; see
  // ps::ChiefWord.
  std::optional<uint64_t> reached_step{};
};

// `binary` is the job that the program runs. The job comes from --cluster with --task, or from
// --ps-hosts and --worker-hosts with --task-index, as TensorFlow's flags. Every address has a port:
// `auto` is dtf-launch's to resolve.
// Errors: kUsage, in one line, for the command line; kBadConfig for the files and for --set.
TaskOptions parseTaskCommandLine(int argc, const char* const* argv, JobKind binary);

}  // namespace dtf::cluster
