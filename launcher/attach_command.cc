// dtf-launch attach: what a person would see of a running job had they started it here.

#include <unistd.h>

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "common/base/error.h"
#include "common/base/print.h"
#include "launcher/commands.h"
#include "launcher/console.h"
#include "launcher/detach.h"
#include "launcher/find_run.h"
#include "launcher/launch_plan.h"
#include "launcher/live_status.h"
#include "launcher/log_fanin.h"
#include "launcher/log_merge.h"
#include "launcher/output.h"
#include "launcher/report.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

constexpr auto kPoll = std::chrono::milliseconds(200);

// How the job ended, as `up` says it.
int reportEnd(const fs::path& folder, const Options& options) {
  const nlohmann::ordered_json summary = readSummary(folder);
  if (summary.empty())
    throw Error(ErrorCode::kUnavailable, "the job's dtf-launch ended without a word\n  less " +
                                             shellQuote((folder / "logs").string()));
  if (options.json)
    printEvent("summary", summary);
  else
    print(resultReport(summary, folder));
  const auto code = summary.find("exit_code");
  if (code != summary.end() && code->is_number_integer()) return code->get<int>();
  const auto outcome = summary.find("outcome");
  const bool done = outcome != summary.end() && *outcome == outcomeName(Outcome::kDone);
  return done ? 0 : exitCode(ErrorCode::kUnavailable);
}

}  // namespace

int attach(const cluster::JobSpec& job, const Options& options) {
  const FoundRun run = findRun(job, options);
  if (!run.running)
    throw Error(ErrorCode::kUnavailable, job.job + " is not running in " + run.folder.string() +
                                             "\n  how it ended: dtf-launch status " +
                                             shellQuote(options.cluster_file.string()));
  Console console(STDERR_FILENO, canRedraw(STDERR_FILENO));
  LogMerge said;
  const fs::path log = launcherLog(run.folder / "logs", newestAttempt(run.folder / "logs"));
  std::error_code ignored;
  if (fs::exists(log, ignored)) said.add(log);
  if (!console.isTerminal())
    console.line(fmt::format("dtf-launch: attached to {}, pid {}", job.job, run.running->launcher));
  for (bool running = true; running;) {
    const std::optional<LaunchRecord> record = runningLaunch(run.folder);
    running = record && record->launcher == run.running->launcher;
    said.read(!running, [&console](const LogLine& line) { console.line(printable(line.text)); });
    const auto live = readStatus(run.folder);
    const std::string line = live.value("line", "");
    console.status(printable(line).substr(0, console.columns() - 1));
    console.pump();
    if (running) std::this_thread::sleep_for(kPoll);
  }
  console.finish();
  return reportEnd(run.folder, options);
}

}  // namespace dtf::launcher
