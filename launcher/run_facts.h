#pragma once

// A run as the files of its folder describe it, for `dtf-launch runs` and `compare`.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/json.h"

namespace dtf::launcher {

// Value type. A fact that the files don't have is nullopt or empty.
struct RunFacts {
  std::filesystem::path folder;        // absolute, without links
  std::string id;                      // see runId()
  std::filesystem::path cluster_file;  // of the last launch there, from a registry of runs
  std::string job;
  // "running", "serving"; the outcome of the summary: "done", "stopped", "interrupted", "failed";
  // "killed": nothing runs there, and there is no summary; "unknown": the last launch was on
  // another host, and there is no summary.
  std::string state;
  std::optional<std::chrono::system_clock::time_point> started;
  std::optional<double> seconds;  // of the last launch until its end; until now, if it runs
  std::optional<uint64_t> step, steps;
  std::optional<double> loss;                        // of the last training batch
  std::vector<std::pair<std::string, double>> eval;  // the last evaluation: "loss", "accuracy"...
  std::optional<double> steps_per_second, examples_per_second;
  std::optional<uint64_t> checkpoint;  // the step of the newest one in the folder
  std::string parameters_digest;
  std::optional<uint64_t> exit_code;
};

// Returns the id of a run directory: eight hexadecimal digits that follow from its path alone.
std::string runId(const std::filesystem::path& folder);

// Returns whether something runs in `folder`, or has run there.
bool isRun(const std::filesystem::path& folder);

// Returns the facts of a run, except `cluster_file`.
// Blocks: on the disk, for small files and the names of the checkpoints.
RunFacts readRun(const std::filesystem::path& folder);

// Returns id, job, run_dir, cluster_file, state, started, wall_seconds, global_step, steps,
// final_loss, eval, steps_per_second, examples_per_second, checkpoint_step, parameters_digest,
// exit_code.
Json runJson(const RunFacts& run);

// Returns "accuracy 0.9012, auc 0.8810": the evaluation without its loss.
std::string metricsText(const RunFacts& run);

}  // namespace dtf::launcher
