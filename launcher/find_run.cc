#include "launcher/find_run.h"

#include <vector>

#include "common/base/error.h"
#include "common/base/run_registry.h"
#include "launcher/launch_plan.h"
#include "launcher/log_fanin.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void failSeveral(const Options& options, const std::vector<FoundRun>& running) {
  std::string text = "several runs of " + options.cluster_file.string() + " are running";
  for (const FoundRun& run : running)
    text += "\n  name one: --run-dir " + shellQuote(run.folder.string());
  throw Error(ErrorCode::kUsage, text);
}

}  // namespace

FoundRun findRun(const cluster::JobSpec& job, const Options& options) {
  const FoundRun here{job.run_dir, runningLaunch(job.run_dir)};
  if (options.run_dir || here.running) return here;
  std::vector<FoundRun> running;
  const std::vector<KnownRun> known =
      RunRegistry().runsOf(registeredPath(options.cluster_file), job.job);
  for (const KnownRun& run : known)
    if (std::optional<LaunchRecord> record = runningLaunch(run.run_dir))
      running.push_back({run.run_dir, std::move(record)});
  if (running.size() > 1) failSeveral(options, running);
  if (!running.empty()) return running.front();
  std::error_code ignored;
  if (fs::exists(here.folder / "logs", ignored) || known.empty()) return here;
  return {known.front().run_dir, std::nullopt};
}

// An older version recorded none, and a job by hand has none.
int launchAttempt(const fs::path& run_dir) {
  const int recorded = lastLaunch(run_dir).attempt;
  return recorded > 0 ? recorded : newestAttempt(run_dir / "logs");
}

std::string rememberRun(const cluster::JobSpec& job, const fs::path& cluster_file) {
  try {
    RunRegistry().remember({registeredPath(cluster_file), registeredPath(job.run_dir), job.job});
    return "";
  } catch (const Error& error) {
    return "warning: status, logs and stop will find this job only from this folder: " +
           error.message();
  }
}

}  // namespace dtf::launcher
