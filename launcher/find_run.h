#pragma once

// Which run of a cluster file a verb is about.

#include <filesystem>
#include <optional>

#include "common/cluster/spec.h"
#include "launcher/options.h"
#include "launcher/run_folder.h"

namespace dtf::launcher {

struct FoundRun {
  std::filesystem::path folder;  // where it runs, or ran last; the file's own if it never did
  std::optional<LaunchRecord> running;  // none: nothing runs there
  // The file of the last run there, where that is another one; else empty.
  std::filesystem::path other_file{};
};

// In this order: --run-dir; the file's run directory as seen from here, when a job runs there; a
// run of the file that was started from another folder and is running; the last run, from here or
// from elsewhere. A folder that another file has taken over comes last, and none of its runs counts
// as running unless it is the one of --run-dir, or is here.
// Errors: kUsage naming them when several are running, and none of them from here.
FoundRun findRun(const cluster::JobSpec& job, const Options& options);

// Returns "the last run in DIR is of OTHER.yaml, not of this file"; empty where it is of this one.
std::string otherFileText(const FoundRun& run);

// Returns a line on the runs of jobs with this name that are running in other folders; empty
// without any. Such a run is not the one that a launch of `job` goes on with.
std::string runningElsewhereText(const cluster::JobSpec& job);

// Of the last launch in `run_dir`: the number of its first logs (log_fanin.h). Tasks that were
// started again have others, too.
int launchAttempt(const std::filesystem::path& run_dir);

// To be called by who starts a job, once it holds the run directory: what findRun() will look for.
// A failure costs only that.
// Returns the warning to show, or an empty text.
std::string rememberRun(const cluster::JobSpec& job, const std::filesystem::path& cluster_file);

}  // namespace dtf::launcher
