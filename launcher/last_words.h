#pragma once

// The end of a launch, as it is told: why the job failed, and what it has reached.

#include <filesystem>

#include "common/base/json.h"
#include "common/cluster/spec.h"
#include "launcher/event_writer.h"
#include "launcher/log_fanin.h"
#include "launcher/task_monitor.h"

namespace dtf::launcher {

// Borrows: all of it, for a call.
struct EndedJob {
  const cluster::JobSpec& job;
  const TaskMonitor& monitor;
  const LogFanin& logs;
  const std::filesystem::path& run_dir;
  bool out_of_memory = false;    // the kernel has killed a task for lack of it
  bool earlier_summary = false;  // summary.json is that of the run before, as this one was refused
};

// `summary` is what summary.json has. `events`: in the place of the report for people; null: that.
// Returns the exit code of the launch: the job's, or 73 where it is 0 and stdout did not take the
// result.
// Blocks: on slow readers, some seconds each while they take nothing.
int sayLastWords(const EndedJob& job, EventWriter* events, const Json& summary);

}  // namespace dtf::launcher
