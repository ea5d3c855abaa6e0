#pragma once

// `up --detach`: the launch in a process of its own that outlives the terminal.

#include <filesystem>
#include <optional>

#include "common/cluster/spec.h"
#include "launcher/session.h"

namespace dtf::launcher {

// Where a detached dtf-launch writes what it would show: <run_dir>/logs/dtf-launch.<attempt>.log.
std::filesystem::path launcherLog(const std::filesystem::path& logs, int attempt);

// Starts launch() in a new session and returns once every task is ready: 0, having said how to go
// on (`options.json`: the event "detached"), in commands for `cluster_file` and, where the user has
// named one, `run_dir`. When the job ends before that: its exit code, with
// what it said (and the event "summary" or "error"). A signal until then goes to the launcher: it
// stops the job.
// Blocks: for timeouts.start_seconds at most.
// Errors: kCannotWrite for the log; kUnavailable when no process can be made.
int launchDetached(const cluster::JobSpec& job, LaunchOptions options,
                   const std::filesystem::path& cluster_file,
                   const std::optional<std::filesystem::path>& run_dir);

}  // namespace dtf::launcher
