// dtf-launch stop: ends a running job, and says whether it was saved.

#include <fmt/core.h>
#include <signal.h>

#include <cerrno>
#include <thread>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/print.h"
#include "launcher/commands.h"
#include "launcher/find_run.h"
#include "launcher/json_fields.h"
#include "launcher/live_status.h"
#include "launcher/live_tasks.h"
#include "launcher/monitor_limits.h"
#include "launcher/output.h"
#include "launcher/systemd/unit_commands.h"
#include "launcher/task_monitor.h"

namespace dtf::launcher {

namespace {

using nlohmann::ordered_json;

constexpr auto kStopPoll = std::chrono::milliseconds(20);
// From the job's summary to the launcher's end, unless it brings a model here.
constexpr Duration kEndWithin = std::chrono::seconds(3);

// Whether the run in `folder` of `launcher` has ended.
bool hasEnded(const std::filesystem::path& folder, pid_t launcher) {
  const std::optional<LaunchRecord> record = runningLaunch(folder);
  return !record || record->launcher != launcher;
}

// Errors: kPermission; kUnavailable.
void askToStop(const FoundRun& run) {
  DTF_CHECK(run.running.has_value());
  const pid_t launcher = run.running->launcher;
  if (launcher > 0 && ::kill(launcher, SIGTERM) == 0) return;
  throw Error(errno == EPERM ? ErrorCode::kPermission : ErrorCode::kUnavailable,
              fmt::format("cannot signal {} of {}, pid {}: {}", run.running->program,
                          run.folder.string(), launcher, errnoText(errno)));
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
    if (said && now > *said + kEndWithin) return;
    if (!said && now > deadline)
      throw Error(ErrorCode::kDeadline,
                  fmt::format("{}, pid {}, has not ended within {:.0f} s, longer than it may take\n"
                              "  unsaved, and at once: kill -KILL {}",
                              run.running->program, run.running->launcher, toSeconds(limit),
                              run.running->launcher));
    std::this_thread::sleep_for(kStopPoll);
  }
}

// "stopped at step 4210, saved": from the summary of the run that has ended.
std::string endText(const ordered_json& summary) {
  const std::string outcome = textOf(summary, "outcome");
  if (outcome.empty()) return "ended without a word, not saved";
  std::string text = outcome;
  if (const auto step = countOf(summary, "global_step")) text += fmt::format(" at step {}", *step);
  if (outcome == outcomeName(Outcome::kDone)) return text;
  if (outcome == outcomeName(Outcome::kStopped))
    return text + (summary.contains("serves") ? "" : ", saved");
  text += ", not saved";
  const auto checkpoint = summary.find("checkpoint");
  if (checkpoint == summary.end() || !checkpoint->is_object()) return text;
  const std::optional<uint64_t> last = countOf(*checkpoint, "last_step");
  return text + (last ? fmt::format("; the newest checkpoint is of step {}", *last) : "");
}

// The job's own, which is 0 when it was saved, or done.
int endCode(const ordered_json& summary) {
  const std::optional<uint64_t> code = countOf(summary, "exit_code");
  return code && *code < 256 ? static_cast<int>(*code) : exitCode(ErrorCode::kUnavailable);
}

void say(const cluster::JobSpec& job, const Options& options, const FoundRun& run,
         const ordered_json& summary) {
  if (options.json)
    return printEvent("stop", {{"job", job.job},
                               {"run_dir", run.folder.string()},
                               {"was_running", run.running.has_value()},
                               {"summary", summary.empty() ? ordered_json(nullptr) : summary}});
  if (run.running) return print(job.job + ": " + endText(summary) + "\n");
  std::string text = fmt::format("{}: not running in {}, nor elsewhere from {}", job.job,
                                 run.folder.string(), options.cluster_file.string());
  if (!summary.empty()) text += "; its last run: " + endText(summary);
  print(text + "\n");
}

}  // namespace

int stop(const cluster::JobSpec& job, const Options& options) {
  FoundRun run = findRun(job, options);
  if (stopUnits(job, run.folder)) {
    if (!run.running) run.running.emplace();  // its chief was just being started again
  } else if (run.running) {
    askToStop(run);
    awaitEnd(run, stopLimit(job));
  } else if (!options.run_dir && !askUnknownRun(job).empty()) {
    throw Error(ErrorCode::kUnavailable,
                job.job +
                    " runs, but not in a run directory that is known here\n"
                    "  stop it where, and as whom, it was started; of units: "
                    "systemctl stop 'dtf-*@*'");
  }
  const ordered_json summary = readSummary(run.folder);
  say(job, options, run, summary);
  return run.running ? endCode(summary) : kNotRunning;
}

}  // namespace dtf::launcher
