#pragma once

// status.json in the run directory: how far the job is, for `dtf-launch status` and `attach`. It is
// there while dtf-launch runs; afterwards summary.json says more.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "common/base/json.h"
#include "launcher/notice.h"

namespace dtf::launcher {

// Value type. What is not known yet is nullopt or empty.
struct LiveStatus {
  std::optional<ProgressNotice> progress;
  std::optional<EvaluationNotice> evaluation;  // the last one
  std::optional<uint64_t> checkpoint;          // the step of the newest
  std::optional<double> steps_per_second;
  std::optional<double> seconds_left;
  std::string line;  // the progress in one line, as dtf-launch shows it
  std::string time;  // when this was written
};

// step, steps, loss, examples_per_second, steps_per_second, seconds_left, straggler, eval,
// checkpoint_step, line, time.
Json statusJson(const LiveStatus& status);

// Replaces the file at once. Not made durable: it says nothing that matters after a power cut.
// Errors: none; where it can't be written its time shows its age.
void writeStatus(const std::filesystem::path& file, const LiveStatus& status);

// status.json and summary.json of a run directory: a JSON object; an empty one where there is no
// such file, or none that can be read.
Json readStatus(const std::filesystem::path& folder);
Json readSummary(const std::filesystem::path& folder);

// The summary of the last launch; that of the run before where it found the job done already;
// empty where it was refused, and left that of a run before it.
Json readOwnSummary(const std::filesystem::path& folder);

}  // namespace dtf::launcher
