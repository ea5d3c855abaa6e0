// dtf-launch attach: what a person would see of a running job had they started it here.

#include <unistd.h>

#include <fmt/core.h>

#include <thread>
#include <utility>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/json.h"
#include "common/base/print.h"
#include "common/base/text.h"
#include "launcher/announce.h"
#include "launcher/commands.h"
#include "launcher/console.h"
#include "launcher/detach.h"
#include "launcher/find_run.h"
#include "launcher/json_fields.h"
#include "launcher/launch_plan.h"
#include "launcher/live_status.h"
#include "launcher/live_tasks.h"
#include "launcher/log_fanin.h"
#include "launcher/log_merge.h"
#include "launcher/output.h"
#include "launcher/report.h"
#include "launcher/systemd/unit_commands.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

constexpr auto kAttachPoll = std::chrono::milliseconds(200);
constexpr Duration kProgressEvery = std::chrono::seconds(5);

// What dtf-launch said while the job ran on a terminal of its own: it left no log of that, so
// status.json has to tell it.
class ToldByStatus {
 public:
  explicit ToldByStatus(Console& console) : console_(console) {}

  void read(const Json& live) {
    if (const Json* const eval = live.find("eval"); eval != nullptr && eval->isObject())
      evaluation({countOf(*eval, "step").value_or(0), numberOf(*eval, "loss"),
                  numberOf(*eval, "accuracy"), metricsOf(*eval)});
    if (!console_.isTerminal()) progress(printable(textOf(live, "line")));
  }

 private:
  void evaluation(const EvaluationNotice& evaluation) {
    if (evaluated_ == evaluation.step) return;
    evaluated_ = evaluation.step;
    console_.line("dtf-launch: " + evaluationText(evaluation));
  }
  // On a terminal it is the status line.
  void progress(const std::string& line) {
    const TimePoint now = clock_.now();
    if (line.empty() || line == line_ || (!line_.empty() && now < shown_ + kProgressEvery)) return;
    line_ = line;
    shown_ = now;
    console_.line(line);
  }

  Console& console_;
  const SystemClock clock_;
  std::optional<uint64_t> evaluated_;  // the step
  std::string line_;                   // shown last
  TimePoint shown_{};
};

// What status.json would say of a job by hand, which has none: from its tasks, once a second.
class AskedProgress {
 public:
  AskedProgress(const cluster::ClusterSpec& cluster, const LaunchRecord& record,
                const net::Credentials& credentials)
      : cluster_(cluster), record_(record), credentials_(credentials) {}

  const Json& read() {
    if (const TimePoint now = clock_.now(); now >= next_) {
      next_ = now + std::chrono::seconds(1);
      Json progress = progressOf(askTasks(cluster_, record_, credentials_));
      if (!progress.isNull()) said_ = std::move(progress);
    }
    return said_;
  }

 private:
  const cluster::ClusterSpec& cluster_;
  const LaunchRecord& record_;
  const net::Credentials credentials_;
  const SystemClock clock_;
  TimePoint next_{};
  Json said_ = Json::object();
};

// How the job ended, as `up` says it.
int reportEnd(const fs::path& folder, const Options& options) {
  const Json summary = readOwnSummary(folder);
  if (summary.empty())
    throw Error(ErrorCode::kUnavailable,
                "the job was refused before its first step, or its "
                "dtf-launch was killed\n  " +
                    logsCommand(options));
  if (options.json)
    printEvent("summary", summary);
  else
    print(resultReport(summary, folder));
  const bool done = textOf(summary, "outcome") == outcomeName(Outcome::kDone);
  const std::optional<uint64_t> code = countOf(summary, "exit_code");
  return code && *code < 256 ? static_cast<int>(*code)
         : done              ? 0
                             : exitCode(ErrorCode::kUnavailable);
}

}  // namespace

int attach(const cluster::JobSpec& job, const Options& options,
           const net::Credentials& credentials) {
  const FoundRun run = findRun(job, options);
  if (showUnits(job, options, run.folder, credentials)) return reportEnd(run.folder, options);
  if (!run.running)
    throw Error(ErrorCode::kUnavailable, job.job + " is not running in " + run.folder.string() +
                                             "\n  how it ended: dtf-launch status " +
                                             shellQuote(options.cluster_file.string()));
  Console console(STDERR_FILENO, canRedraw(STDERR_FILENO));
  LogMerge said;
  const fs::path log = launcherLog(run.folder / "logs", launchAttempt(run.folder));
  std::error_code ignored;
  const bool has_log = fs::exists(log, ignored);
  if (has_log) said.add(log);
  ToldByStatus told(console);
  const bool is_by_hand = run.running->program != LaunchRecord().program;
  AskedProgress asked(job.cluster, *run.running, credentials);
  if (!console.isTerminal())
    console.line(fmt::format("dtf-launch: attached to {}, pid {}{}", job.job, run.running->launcher,
                             onHostText(*run.running)));
  for (bool running = true; running;) {
    const std::optional<LaunchRecord> record = runningLaunch(run.folder);
    running = record && record->launcher == run.running->launcher;
    said.read(!running, kAnyTime,
              [&console](const LogLine& line) { console.line(printable(line.text)); });
    const Json live = is_by_hand && running ? asked.read() : readStatus(run.folder);
    if (!has_log) told.read(live);
    console.status(printable(textOf(live, "line")).substr(0, console.columns() - 1));
    console.pump();
    if (running) std::this_thread::sleep_for(kAttachPoll);
  }
  console.finish();
  return reportEnd(run.folder, options);
}

}  // namespace dtf::launcher
