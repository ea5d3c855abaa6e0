#pragma once

// summary.json: what a job reached, written however it ends: by dtf-launch, or by a chief that was
// started by hand. README.md ("What a run leaves") lists its keys.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/base/json.h"

namespace dtf {

// How one task ended. Value type.
struct TaskEnd {
  std::string name;              // "worker/1"
  std::optional<int> exit_code;  // 128+n for signal n; none: was not started, or outlived SIGKILL
  std::string cause;             // why it did not end well; empty: it did
  uint32_t restarts = 0;         // how often it was started again in this launch
};

// What whoever writes the summary knows itself. Value type.
struct JobEnd {
  std::string job;
  std::string outcome;  // "done", "stopped", "interrupted", "failed"
  int exit_code = 0;    // of the writer
  double wall_seconds = 0;
  std::vector<TaskEnd> tasks;
};

// The whole summary, with the time of now as that of the end. `reached` is the chief's part: what
// every summary has of it (global_step, final_loss, examples_per_second, steps_per_second; eval, an
// object) is null (empty) where it says nothing, what else it has is added, and where both know,
// `end` wins.
Json summaryJson(const JobEnd& end, const Json& reached);

// `serves`: of tasks that served, which leave the summary of a job there alone.
std::filesystem::path summaryFile(const std::filesystem::path& run_dir, bool serves = false);

// Removes the summary of an earlier run: one that is there is of the last.
// Errors: kCannotWrite; kPermission.
void removeSummary(const std::filesystem::path& run_dir, bool serves = false);

// Takes room on the disk for the next one, so that a job which fills the disk still says how it
// ended. Where there is no room, nothing.
void takeSummaryRoom(const std::filesystem::path& run_dir);

// Replaces the file at once or not at all: on a full disk in the room that was taken.
// Errors: kCannotWrite; kPermission.
void writeSummary(const std::filesystem::path& run_dir, const Json& summary, bool serves = false);

// Gives back the room that was taken. Called once no more is written.
void releaseSummaryRoom(const std::filesystem::path& run_dir);

}  // namespace dtf
