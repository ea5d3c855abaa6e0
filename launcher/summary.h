#pragma once

// What dtf-launch adds to summary.json (common/base/job_summary.h): how the tasks ended, and what
// the chief has told of the job, its result or else its progress.

#include <optional>
#include <string>

#include "common/base/job_summary.h"
#include "common/base/json.h"
#include "launcher/progress.h"
#include "launcher/task_monitor.h"

namespace dtf::launcher {

struct JobSummary {
  JobEnd end;                          // its outcome is the tasks', without the chief's words
  ProgressMeter progress;              // the chief's progress: counts where there is no result
  std::optional<ResultNotice> result;  // the chief's own words, which win
  std::optional<uint64_t> checkpoint;  // the step of the newest that the chief has told of
  int attempt = 0;                     // of the launch
  bool serves = false;                 // there was no job
  std::string model{};                 // the folder here that the trained model was brought to
};

// Everything but the chief's progress and result.
JobSummary summarize(const std::string& job, const TaskMonitor& monitor, double wall_seconds);

// The whole summary. A job whose tasks were asked to stop when it had come to its end is done, and
// its exit code is 0; one that one of its tasks had saved and ended early is stopped.
Json summaryJson(const JobSummary& summary);

}  // namespace dtf::launcher
