#include "launcher/systemd/unit_commands.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <thread>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/job_summary.h"
#include "common/base/json.h"
#include "common/base/print.h"
#include "common/base/run_lock.h"
#include "common/base/text.h"
#include "launcher/announce.h"
#include "launcher/find_run.h"
#include "launcher/json_fields.h"
#include "launcher/live_status.h"
#include "launcher/log_fanin.h"
#include "launcher/monitor_limits.h"
#include "launcher/output.h"
#include "launcher/report.h"
#include "launcher/run_folder.h"
#include "launcher/snapshot_guard.h"
#include "launcher/systemd/unit_follower.h"
#include "launcher/systemd/unit_job.h"
#include "launcher/systemd/unit_text.h"
#include "launcher/systemd/unit_verdict.h"
#include "launcher/systemd/unit_watch.h"
#include "launcher/timeline.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

constexpr auto kUnitsPoll = std::chrono::milliseconds(100);
constexpr auto kFollowersLook =
    std::chrono::seconds(1);  // an `up` or `attach` is to see the end, too
constexpr Duration kUnitStop = std::chrono::seconds(60);    // TimeoutStopSec= of a unit that hangs
constexpr Duration kRestWithin = std::chrono::seconds(10);  // without a byte
constexpr Duration kRestMax = std::chrono::minutes(10);
constexpr int kHungUp = 128 + SIGHUP;
constexpr mode_t kMirrorMode = 0640;

// In the words of units: nothing depends on where they start.
std::vector<UnitFile> plannedUnits(const cluster::JobSpec& job, PlanInput input,
                                   const UnitJob& units, const fs::path& logs, int attempt) {
  input.cluster_file = fs::absolute(input.cluster_file).lexically_normal();
  std::vector<TaskCommand> plan = makePlan(job, input, {});
  std::vector<UnitSettings> settings(plan.size());
  for (const UnitJob::Part& part : units.parts())
    for (const size_t task : part.tasks) {
      const HostFacts& facts = part.host->facts();
      TaskCommand& command = plan.at(task);
      command.argv[0] = (command.id.job == JobKind::kPs ? facts.psd : facts.workerd).string();
      command.folder = facts.work_folder;
      settings[task] = {facts.env, logs / logFileName(command.id, attempt)};
      if (!part.host->name().empty()) command.env["DTF_SENT_FILES"] = facts.sent_folder.string();
    }
  std::vector<UnitFile> files;
  for (size_t task = 0; task < plan.size(); ++task)
    files.push_back({unitName(job.job, plan[task].id), unitText(job, plan[task], settings[task])});
  return files;
}

// What starts the units of a host, and which they are.
struct PlannedHost {
  std::string name;  // empty: this one
  std::vector<std::pair<fs::path, std::string>> files;
  std::vector<std::string> commands;
};

std::vector<PlannedHost> plannedHosts(const UnitJob& units, const std::vector<UnitFile>& files) {
  std::vector<PlannedHost> hosts;
  for (const UnitJob::Part& part : units.parts()) {
    const HostFacts& facts = part.host->facts();
    PlannedHost& host = hosts.emplace_back(PlannedHost{part.host->name(), {}, {}});
    std::string names;
    for (const size_t task : part.tasks) {
      host.files.emplace_back(facts.unit_folder / files[task].name, files[task].text);
      names += " " + files[task].name;
    }
    const std::string systemctl = join(facts.systemctl, " ");
    host.commands = {systemctl + " daemon-reload", systemctl + " start --no-block" + names};
  }
  return hosts;
}

int printUnits(const UnitJob& units, const std::vector<UnitFile>& files, bool json) {
  Json said = {{"commands", Json::array()}, {"units", Json::array()}};
  std::string text;
  for (const PlannedHost& host : plannedHosts(units, files)) {
    const std::string at = host.name.empty() ? "" : host.name + ":";
    for (const auto& [file, unit] : host.files) {
      text += "# " + at + file.string() + "\n" + unit + "\n";
      Json each = {{"file", file.string()}, {"text", unit}};
      if (!at.empty()) each["host"] = host.name;
      said["units"].push_back(each);
    }
    if (!at.empty()) text += "# on " + host.name + ", over ssh:\n";
    text += join(host.commands, "\n") + "\n";
    for (const std::string& command : host.commands)
      if (at.empty())
        said["commands"].push_back(command);
      else
        said["commands_there"][host.name].push_back(command);
  }
  if (json)
    printEvent("plan", said);
  else
    print(text);
  return 0;
}

// Of tasks on other hosts: what those have written by now. They are there before their first line,
// so that whoever follows can open them.
void makeLogsOfOthers(const UnitJob& units, const cluster::JobSpec& job, const fs::path& logs,
                      int attempt) {
  const std::vector<TaskId> tasks = allTasks(job.cluster);
  for (const UnitJob::Part& part : units.parts()) {
    if (part.host->name().empty()) continue;
    for (const size_t task : part.tasks) {
      const fs::path file = logs / logFileName(tasks[task], attempt);
      const Fd log(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMirrorMode));
      if (!log.valid()) failWrite(file, errno);
    }
  }
}

// Of the launch that runs.
int attemptOf(const UnitJob& units, const fs::path& run_dir) {
  return units.hasOtherHosts() ? units.nextAttempt() - 1 : launchAttempt(run_dir);
}

// From now on, with every look at the units.
void bringFiles(UnitJob& units, const fs::path& run_dir) {
  if (!units.hasOtherHosts()) return;
  makeWritableFolder(run_dir / "logs");
  units.bringFiles(attemptOf(units, run_dir));
}

// What the hosts have written to the end. A host that is silent has its files for another time.
void bringRest(UnitJob& units) {
  const SystemClock clock;
  const TimePoint end = clock.now() + kRestMax;
  TimePoint came = clock.now();
  for (uint64_t brought = units.brought(); clock.now() < std::min(end, came + kRestWithin);) {
    try {
      if (units.bringRest()) return;
    } catch (const Error&) {
      std::this_thread::sleep_for(kUnitsPoll);
    }
    if (std::exchange(brought, units.brought()) != units.brought()) came = clock.now();
  }
}

void sayNews(UnitJob& units) {
  for (const std::string& text : units.news())
    printBounded(STDERR_FILENO, "dtf-launch: " + text + "\n");
}

void warn(const Error& error) {
  printBounded(STDERR_FILENO, "dtf-launch: warning: " + error.message() + "\n");
}

void warn(const UnitJob& units) {
  for (const UnitJob::Part& part : units.parts()) {
    const std::string& warning = part.host->facts().warning;
    const std::string& name = part.host->name();
    if (!warning.empty())
      printBounded(STDERR_FILENO,
                   "dtf-launch: " + (name.empty() ? "" : name + ": ") + warning + "\n");
  }
}

void sayDetached(const cluster::JobSpec& job, const Options& options) {
  if (options.json)
    return printEvent("detached", {{"job", job.job}, {"run_dir", job.run_dir.string()}});
  const std::string name = shellQuote(options.cluster_file.string());
  print(
      fmt::format("{0}: runs as units, dtf-{0}@*\n"
                  "  dtf-launch status {1}\n  dtf-launch attach {1}\n  dtf-launch stop {1}\n",
                  job.job, name));
}

int reportUnits(const cluster::JobSpec& job, const Options& options, const Json& summary) {
  Remains remains;
  remains.earlier_summary = settleSummaries(job.run_dir, summary);
  remains.saves_nothing = job.savesNothing();
  try {
    mergeTimelines(job.run_dir, allTasks(job.cluster));
  } catch (const Error& error) {
    printBounded(STDERR_FILENO, "dtf-launch: warning: no timeline.json: " + error.message() + "\n");
  }
  if (options.json)
    printEvent("summary", summary);
  else
    print(resultReport(summary, job.run_dir, remains));
  return summary["exit_code"].asInt();
}

// Of the tasks' own: launch.json belongs to the chief, so that it holds it as long as the job runs.
void takeRunFolder(const cluster::JobSpec& job, const Options& options) {
  checkNothingRuns(job.run_dir);
  makeWritableFolder(job.run_dir / "logs");
  removeTimelines(job.run_dir, allTasks(job.cluster));
  const std::string warning = rememberRun(job, options.cluster_file);
  if (!warning.empty()) printBounded(STDERR_FILENO, "dtf-launch: " + warning + "\n");
}

}  // namespace

int upAsUnits(const cluster::JobSpec& job, const Options& options, const PlanInput& input,
              const UnitStart& start, const net::Credentials& credentials) {
  // It would be in the unit, for each start of the chief.
  if (options.fresh)
    throw Error(ErrorCode::kUsage,
                "--fresh is not for units: each restart by systemd would start anew\n  to start "
                "anew: use another --run-dir, or move " +
                    (job.run_dir / "checkpoints").string() + " away");
  UnitJob units(job, job.run_dir, start);
  units.meet();
  if (!options.dry_run) units.lock();  // two that start one job would both find the names free
  const fs::path logs = fs::absolute(job.run_dir / "logs").lexically_normal();
  const int attempt = units.nextAttempt();
  const std::vector<UnitFile> files = plannedUnits(job, input, units, logs, attempt);
  if (options.dry_run) return printUnits(units, files, options.json);
  units.checkFree();
  takeRunFolder(job, options);
  EarlierSummary earlier(job.run_dir);
  makeLogsOfOthers(units, job, logs, attempt);
  warn(units);
  if (options.verbosity != Verbosity::kQuiet)
    printBounded(STDERR_FILENO, "dtf-launch: " + startText(job, job.run_dir / "logs") + "\n");
  units.bringFiles(attempt);
  UnitFollower follower(job, options, units, attempt, true, credentials);
  units.start(files, attempt);
  earlier.tasksRun();
  units.unlock();
  if (follower.run(options.detach)) {
    if (follower.hungUp()) return kHungUp;
    sayDetached(job, options);
    return 0;
  }
  bringRest(units);
  const Json summary = follower.finish();
  units.removeEnded(endsSnapshots(textOf(summary, "outcome"), follower.wasReady()));
  sayNews(units);
  return reportUnits(job, options, summary);
}

namespace {

// Errors: kDeadline.
void awaitUnits(const cluster::JobSpec& job, UnitJob& units) {
  const SystemClock clock;
  const Duration limit = stopLimit(job) + kUnitStop;
  const TimePoint deadline = clock.now() + limit;
  UnitWatch watch(
      job.job, [&units] { return units.look(); }, clock);
  for (;;) {
    const std::optional<std::vector<UnitState>> states = watch.look();
    if (states && allEnded(*states)) return;
    if (clock.now() > deadline)
      throw Error(
          ErrorCode::kDeadline,
          fmt::format(
              "the units of {0} have not ended within {1:.0f} s, their time limit\n  to end them "
              "at once, unsaved, on each host: systemctl kill --signal=KILL 'dtf-{0}@*'",
              job.job, toSeconds(limit)));
    std::this_thread::sleep_for(kUnitsPoll);
  }
}

// Of hosts that can't be reached nobody knows what runs there.
void failLost(const cluster::JobSpec& job, const std::vector<Error>& lost) {
  if (lost.empty()) return;
  std::string text;
  for (const Error& error : lost) text += error.message() + "\n  ";
  throw Error(lost.front().code(),
              fmt::format("{}the units dtf-{}@* there may still run; the units of the other hosts "
                          "have ended: run dtf-launch stop again when it is back",
                          text, job.job));
}

}  // namespace

bool stopUnits(const cluster::JobSpec& job, const fs::path& run_dir) {
  if (job.launch.via != cluster::LaunchSpec::Via::kSystemd) return false;
  UnitJob units(job, run_dir);
  const std::vector<Error> lost = units.meetReachable();
  units.checkOwn();
  if (!units.isAlive()) {
    // The job ended without a follower. Its snapshots stay where it has no result.
    const Json summary = readSummary(run_dir);
    units.removeEnded(summary.isObject() && endsSnapshots(textOf(summary, "outcome"), false));
    sayNews(units);
    failLost(job, lost);
    return false;
  }
  bringFiles(units, run_dir);
  units.stop();
  awaitUnits(job, units);
  std::this_thread::sleep_for(kFollowersLook);
  bringRest(units);
  units.removeEnded(true);
  sayNews(units);
  failLost(job, lost);
  return true;
}

UnitReader::UnitReader(const cluster::JobSpec& job, const fs::path& run_dir) {
  if (job.launch.via != cluster::LaunchSpec::Via::kSystemd) return;
  auto units = std::make_unique<UnitJob>(job, run_dir);
  if (!units->hasOtherHosts()) return;
  try {
    for (const Error& error : units->meetReachable()) warn(error);
    // A run that was never here is nobody's mistake, but no reason to make folders either.
    std::error_code ignored;
    if (!fs::exists(run_dir, ignored) && !(units->isAlive() && units->isOwn())) return;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable && error.code() != ErrorCode::kDeadline) throw;
    warn(error);
    return;
  }
  bringFiles(*units, run_dir);
  units_ = std::move(units);
}

UnitsLife UnitReader::bring() {
  if (!units_) return UnitsLife::kNone;
  bringRest(*units_);
  sayNews(*units_);
  try {
    return units_->isAlive() && units_->isOwn() ? UnitsLife::kSome : UnitsLife::kNone;
  } catch (const Error& error) {
    if (!std::exchange(is_silence_told_, true)) warn(error);
    return UnitsLife::kUnknown;
  }
}

bool showUnits(cluster::JobSpec job, const Options& options, const fs::path& run_dir,
               const net::Credentials& credentials) {
  if (job.launch.via != cluster::LaunchSpec::Via::kSystemd) return false;
  UnitJob units(job, run_dir);
  if (!units.isAlive()) return false;
  units.checkOwn();
  job.run_dir = run_dir;
  const int attempt = attemptOf(units, run_dir);
  bringFiles(units, run_dir);
  UnitFollower(job, options, units, attempt, false, credentials).run(false);
  return true;
}

}  // namespace dtf::launcher
