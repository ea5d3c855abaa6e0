#pragma once

// The last words on the terminal: what the job reached, and when it failed, why.

#include <filesystem>
#include <string>
#include <vector>

#include "common/base/json.h"
#include "common/cluster/spec.h"
#include "launcher/notice.h"
#include "launcher/task_monitor.h"

namespace dtf::launcher {

// What of a run's folder is there at the end: somebody may have removed it, or the disk was full.
struct Remains {
  bool checkpoint = true;  // the last one
  bool logs = true;
  bool summary = true;
  bool earlier_summary = false;  // that of the run before, as this one was refused
  bool saves_nothing = false;    // the file has 'checkpoint: none'
};
// Blocks: on the disk.
Remains remainsOf(const cluster::JobSpec& job, const Json& summary,
                  const std::filesystem::path& run_dir);

// What the job reached, for stdout: outcome, steps, loss, metrics, rates, and where the logs and
// the summary are. `summary` is summaryJson()'s.
std::string resultReport(const Json& summary, const std::filesystem::path& run_dir,
                         const Remains& remains = {});

struct FailureDetails {
  std::vector<std::string> last_lines;  // of the task that failed first
  std::filesystem::path log;            // empty: it has none
  std::vector<std::string> restarts;    // TaskMonitor::restartHistory()
  bool out_of_memory = false;           // the kernel's OOM killer acted while the job ran
  std::string host;                     // of that task, where tasks are on other hosts
};

// The host of a task where tasks are started on others than this; empty elsewhere.
std::string otherHostOf(const cluster::JobSpec& job, const TaskId& task);

// Why the job failed, for stderr: which task first, how it ended, which tasks were started again
// before, its last lines but for those that repeat its message, its log, and at the end the
// message, which ends with what to do.
std::string failureReport(const std::string& job, const RootCause& root,
                          const FailureDetails& details);

// What a job goes on from, in a line; one more for each setting that changed since.
std::string resumeText(const RestoredNotice& restored);

}  // namespace dtf::launcher
