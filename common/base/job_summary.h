#pragma once

// summary.json: the result of a job, written however it ends, by dtf-launch or by a chief that was
// started by hand. launcher/USING.md ("Files of a run") lists its keys.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/base/json.h"

namespace dtf {

// How one task ended. Value type.
struct TaskEnd {
  std::string name;  // "worker/1"
  // 128+n for signal n; none if it was not started, or outlived SIGKILL
  std::optional<int> exit_code;
  std::string cause;      // why it failed; empty if it succeeded
  uint32_t restarts = 0;  // restarts of the task in this launch
};

// The facts that the writer of the summary knows itself. Value type.
struct JobEnd {
  std::string job;
  std::string outcome;  // "done", "stopped", "interrupted", "failed"
  int exit_code = 0;    // of the writer
  double wall_seconds = 0;
  std::vector<TaskEnd> tasks;
};

// Returns the whole summary, with the current time as the end. `reached` is the chief's part. Its
// usual keys (global_step, final_loss, examples_per_second, steps_per_second, and the object eval)
// are null or empty where it lacks them; its other keys are added. `end` wins over `reached`.
Json summaryJson(const JobEnd& end, const Json& reached);

// Returns the path of the summary. `serves`: tasks that serve have a file of their own, and leave a
// job's summary alone.
std::filesystem::path summaryFile(const std::filesystem::path& run_dir, bool serves = false);

// Removes the summary of an earlier run, so that a summary always belongs to the last run.
// Errors: kCannotWrite; kPermission.
void removeSummary(const std::filesystem::path& run_dir, bool serves = false);

// Reserves disk space for the next summary, so that a job that fills the disk can still report its
// end. Does nothing if there is no space.
void takeSummaryRoom(const std::filesystem::path& run_dir);

// Replaces the file atomically; on a full disk it uses the reserved space.
// Errors: kCannotWrite; kPermission.
void writeSummary(const std::filesystem::path& run_dir, const Json& summary, bool serves = false);

// Frees the reserved space. Call it after the last writeSummary().
void releaseSummaryRoom(const std::filesystem::path& run_dir);

}  // namespace dtf
