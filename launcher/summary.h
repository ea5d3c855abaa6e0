#pragma once

// summary.json: what the job reached, written whenever it ends, for whatever reason.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "launcher/progress.h"
#include "launcher/task_monitor.h"

namespace dtf::launcher {

struct TaskSummary {
  std::string name;
  std::optional<int> exit_code;  // 128+n for signal n; none: was not started, or outlived SIGKILL
  int restarts = 0;
  std::string cause;  // why it did not end well; empty: it did
};

struct JobSummary {
  std::string job;
  Outcome outcome = Outcome::kDone;
  double wall_seconds = 0;
  ProgressMeter progress;              // the chief's progress: counts where there is no result
  std::optional<ResultNotice> result;  // the chief's own words, which win
  std::optional<uint64_t> checkpoint;  // the step of the newest that the chief has told of
  std::vector<TaskSummary> tasks;
};

// Everything but the chief's progress and result.
JobSummary summarize(const std::string& job, const TaskMonitor& monitor, double wall_seconds);

// schema, job, outcome, global_step, final_loss, eval, examples_per_second, steps_per_second,
// wall_seconds, whatever else the chief's result says, tasks. What is not known is null.
nlohmann::ordered_json summaryJson(const JobSummary& summary);

// The chief says that all steps were done: it had come to the end when it was asked to stop.
bool isDone(const JobSummary& summary);

// Replaces the file at once or not at all.
// Errors: kCannotWrite.
void writeSummary(const std::filesystem::path& file, const nlohmann::ordered_json& summary);

}  // namespace dtf::launcher
