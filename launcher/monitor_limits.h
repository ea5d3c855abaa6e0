#pragma once

// How long the launcher waits for what, from the job's timeouts.

#include "common/cluster/spec.h"
#include "launcher/task_monitor.h"

namespace dtf::launcher {

MonitorLimits limitsOf(const cluster::JobSpec& job, bool serves = false);

// The longest that a launcher which is asked to stop takes: its own patience with the tasks, and
// time for its report.
Duration stopLimit(const cluster::JobSpec& job);

}  // namespace dtf::launcher
