// dtf-launch stop: ends a running job, and says whether it was saved.

#include <fmt/core.h>

#include <thread>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/json.h"
#include "common/base/print.h"
#include "launcher/commands.h"
#include "launcher/find_run.h"
#include "launcher/json_fields.h"
#include "launcher/live_status.h"
#include "launcher/live_tasks.h"
#include "launcher/monitor_limits.h"
#include "launcher/output.h"
#include "launcher/process_state.h"
#include "launcher/run_folder.h"
#include "launcher/systemd/unit_commands.h"
#include "launcher/task_monitor.h"

namespace dtf::launcher {

namespace {

constexpr auto kStopPoll = std::chrono::milliseconds(20);
// From the job's summary to the launcher's end, unless it brings a model here.
constexpr Duration kStopWithin = std::chrono::seconds(3);

// Whether the run in `folder` of `launcher` has ended.
bool hasEnded(const std::filesystem::path& folder, pid_t launcher) {
  const std::optional<LaunchRecord> record = runningLaunch(folder);
  return !record || record->launcher != launcher;
}

// The job has ended, and said so; what its launcher still does is to bring its model here.
bool hasSummary(const FoundRun& run) {
  return countOf(readSummary(run.folder), "attempt") == static_cast<uint64_t>(run.running->attempt);
}

// Errors: kDeadline.
void awaitEnd(const FoundRun& run, Duration limit) {
  DTF_CHECK(run.running.has_value() && limit > Duration{0});
  const SystemClock clock;
  const TimePoint deadline = clock.now() + limit;
  std::optional<TimePoint> said;
  while (!hasEnded(run.folder, run.running->launcher)) {
    const TimePoint now = clock.now();
    if (!said && hasSummary(run)) said = now;
    if (said && now > *said + kStopWithin) return;
    if (!said && now > deadline)
      throw Error(ErrorCode::kDeadline,
                  fmt::format("{}, pid {}, has not ended within {:.0f} s, its time limit\n"
                              "  to end it at once, unsaved: kill -KILL {}",
                              run.running->program, run.running->launcher, toSeconds(limit),
                              run.running->launcher));
    std::this_thread::sleep_for(kStopPoll);
  }
}

// "stopped at step 4210, saved": from the summary of the run that has ended.
std::string endText(const cluster::JobSpec& job, const Json& summary) {
  const std::string outcome = textOf(summary, "outcome");
  if (outcome.empty()) return "ended without a summary, not saved";
  std::string text = outcome;
  if (const auto step = countOf(summary, "global_step")) text += fmt::format(" at step {}", *step);
  if (outcome == outcomeName(Outcome::kDone)) return text;
  if (outcome == outcomeName(Outcome::kStopped))
    return text + (summary.contains("serves") ? "" : ", saved");
  text += job.savesNothing() ? ", not saved: the job has 'checkpoint: none'" : ", not saved";
  const Json* const checkpoint = summary.find("checkpoint");
  if (checkpoint == nullptr || !checkpoint->isObject()) return text;
  const std::optional<uint64_t> last = countOf(*checkpoint, "last_step");
  return text + (last ? fmt::format("; the newest checkpoint is of step {}", *last) : "");
}

// The job's own, which is 0 when it was saved, or done.
int endCode(const Json& summary) {
  const std::optional<uint64_t> code = countOf(summary, "exit_code");
  return code && *code < 256 ? static_cast<int>(*code) : exitCode(ErrorCode::kUnavailable);
}

void say(const cluster::JobSpec& job, const Options& options, const FoundRun& run,
         const Json& summary) {
  if (options.json)
    return printEvent("stop", {{"job", job.job},
                               {"run_dir", run.folder.string()},
                               {"was_running", run.running.has_value()},
                               {"summary", summary.empty() ? Json(nullptr) : summary}});
  if (run.running) return print(job.job + ": " + endText(job, summary) + "\n");
  std::string text = fmt::format("{}: not running in {}, nor elsewhere from {}", job.job,
                                 run.folder.string(), options.cluster_file.string());
  if (!summary.empty()) text += "; its last run: " + endText(job, summary);
  print(text + "\n");
}

}  // namespace

int stop(const cluster::JobSpec& job, const Options& options, const net::Credentials& credentials) {
  FoundRun run = findRun(job, options);
  checkOwner(run.folder, options.as_root);
  if (stopUnits(job, run.folder)) {
    if (!run.running) run.running.emplace();  // its chief was just being started again
  } else if (run.running) {
    endLauncher(*run.running, run.folder);
    awaitEnd(run, stopLimit(job));
  } else if (!options.run_dir && !askUnknownRun(job, credentials).empty()) {
    throw Error(ErrorCode::kUnavailable, job.job +
                                             " runs, but its run directory is not known here\n"
                                             "  stop it on the host and as the user that started "
                                             "it; systemd units: systemctl stop 'dtf-*@*'");
  }
  const Json summary = run.running ? readOwnSummary(run.folder) : readSummary(run.folder);
  say(job, options, run, summary);
  return run.running ? endCode(summary) : kNotRunning;
}

}  // namespace dtf::launcher
