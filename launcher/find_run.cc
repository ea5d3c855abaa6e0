#include "launcher/find_run.h"

#include <fmt/core.h>

#include <set>
#include <utility>
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

// The file of the last run in `run_dir`, unless it is `file`.
fs::path otherFile(const fs::path& run_dir, const fs::path& file) {
  const std::optional<KnownRun> last = RunRegistry().lastIn(registeredPath(run_dir));
  return last && last->cluster_file != file ? last->cluster_file : fs::path();
}

}  // namespace

FoundRun findRun(const cluster::JobSpec& job, const Options& options) {
  const fs::path file = registeredPath(options.cluster_file);
  const FoundRun here{job.run_dir, runningLaunch(job.run_dir), otherFile(job.run_dir, file)};
  if (options.run_dir || here.running) return here;
  std::vector<FoundRun> running, ended, taken_over;
  for (const KnownRun& run : RunRegistry().runsOf(file, job.job)) {
    if (fs::path other = otherFile(run.run_dir, file); !other.empty())
      taken_over.push_back({run.run_dir, std::nullopt, std::move(other)});
    else if (std::optional<LaunchRecord> record = runningLaunch(run.run_dir))
      running.push_back({run.run_dir, std::move(record)});
    else
      ended.push_back({run.run_dir, std::nullopt});
  }
  if (running.size() > 1) failSeveral(options, running);
  if (!running.empty()) return running.front();
  std::error_code ignored;
  const bool is_here = fs::exists(here.folder / "logs", ignored);
  if (is_here && here.other_file.empty()) return here;
  if (!ended.empty()) return ended.front();
  return is_here || taken_over.empty() ? here : taken_over.front();
}

std::string otherFileText(const FoundRun& run) {
  if (run.other_file.empty()) return "";
  return fmt::format("the last run in {} is of {}, not of this file", run.folder.string(),
                     run.other_file.string());
}

std::string runningElsewhereText(const cluster::JobSpec& job) {
  const fs::path own = registeredPath(job.run_dir);
  std::string first;
  std::set<fs::path> folders;
  for (const KnownRun& run : RunRegistry().all()) {
    if (run.job != job.job || run.run_dir == own) continue;
    const std::optional<LaunchRecord> record = runningLaunch(run.run_dir);
    if (!record || !folders.insert(run.run_dir).second || !first.empty()) continue;
    first =
        fmt::format("{}, pid {}{}", run.run_dir.string(), record->launcher, onHostText(*record));
  }
  if (folders.empty()) return "";
  const std::string more =
      folders.size() == 1 ? "" : fmt::format(", and {} more", folders.size() - 1);
  return fmt::format("another run of {} is running in {}{}; this one is in {}", job.job, first,
                     more, own.string());
}

// An older version recorded none, and a job by hand has none.
int launchAttempt(const fs::path& run_dir) {
  const int recorded = lastLaunch(run_dir).attempt;
  return recorded > 0 ? recorded : newestAttempt(run_dir / "logs");
}

std::string rememberRun(const cluster::JobSpec& job, const fs::path& cluster_file) {
  return registerRun({registeredPath(cluster_file), registeredPath(job.run_dir), job.job});
}

}  // namespace dtf::launcher
