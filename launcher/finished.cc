#include "launcher/finished.h"

#include <fmt/core.h>

#include "common/base/file_system.h"
#include "common/base/job_summary.h"
#include "common/base/json.h"
#include "common/base/print.h"
#include "common/base/run_lock.h"
#include "common/train/finished_run.h"
#include "launcher/json_fields.h"
#include "launcher/live_status.h"
#include "launcher/output.h"

namespace dtf::launcher {

// A job that was killed between its last checkpoint and its result has no summary of a done job:
// its tasks then evaluate and report.
std::optional<int> answerFinished(const cluster::JobSpec& job, const Options& options) {
  if (options.fresh || options.dry_run || runningLaunch(job.run_dir)) return std::nullopt;
  const Json summary = readSummary(job.run_dir);
  if (textOf(summary, "outcome") != "done") return std::nullopt;
  const std::optional<train::FinishedRun> run = train::findFinishedRun(realFileSystem(), job);
  if (!run) return std::nullopt;
  const std::string text = train::finishedText(job.train.value(), *run);
  if (options.json) {
    printEvent("already_done", {{"job", job.job}, {"step", run->step}, {"message", text}});
    printEvent("summary", summary);
  } else {
    print(
        fmt::format("{}: {}\n  summary    {}\n", job.job, text, summaryFile(job.run_dir).string()));
  }
  return 0;
}

}  // namespace dtf::launcher
