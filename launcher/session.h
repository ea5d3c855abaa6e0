#pragma once

// One launch from the first socket to the last word: wires sockets, processes, logs, progress and
// the monitor on one loop. What to do is decided in task_monitor.h; here it is done.

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "common/cluster/spec.h"
#include "launcher/console.h"
#include "launcher/launch_plan.h"
#include "launcher/task_host.h"
#include "launcher/task_monitor.h"

namespace dtf::launcher {

struct LaunchOptions {
  PlanInput plan;
  bool json = false;  // events on stdout instead of the report
  ColorMode color = ColorMode::kAuto;
  Verbosity verbosity = Verbosity::kNormal;
  std::optional<int> attempt;   // of the log files; none: the next one
  JobFiles files;               // for tasks on other hosts
  double exchange_seconds = 0;  // predicted; 0: no prediction
  // Called once, before any task runs, when the run directory is this launch's; returns a warning
  // to show, or an empty text. Empty: nobody waits for it.
  std::function<std::string()> on_held;
  // Called once, on the loop, when every task is ready. Empty: nobody waits for it.
  std::function<void()> on_ready;
};

// Runs the job to its end and returns the exit code of the process: 0, the root cause's, or 128+n
// when signal n asked to stop. Afterwards no process, port or temporary file of the job is left;
// should this process be killed, the kernel sees to that. Results go to stdout, all else to stderr.
// Blocks: until the job has ended. To be called from the thread that lives as long as the process
// (the tasks die with the thread that started them). Takes over SIGINT, SIGTERM and SIGHUP while it
// runs. The process must ignore SIGPIPE, and must not ignore SIGCHLD.
// Errors: before any task runs: kCannotWrite for the run directory, kUnavailable when another
// launcher holds it or a port is in use, kBadConfig for an address that is not this host's; over
// ssh those of ssh/ssh_command.h for hosts that can't be used. What
// fails later is in the report; kCannotWrite too when stdout did not take the result.
int launch(const cluster::JobSpec& job, const LaunchOptions& options);

}  // namespace dtf::launcher
