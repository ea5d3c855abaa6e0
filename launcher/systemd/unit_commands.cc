#include "launcher/systemd/unit_commands.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/job_summary.h"
#include "common/base/print.h"
#include "common/base/run_lock.h"
#include "common/base/text.h"
#include "launcher/announce.h"
#include "launcher/find_run.h"
#include "launcher/listen_sockets.h"
#include "launcher/log_fanin.h"
#include "launcher/monitor_limits.h"
#include "launcher/output.h"
#include "launcher/report.h"
#include "launcher/systemd/unit_follower.h"
#include "launcher/systemd/unit_job.h"
#include "launcher/systemd/unit_verdict.h"
#include "launcher/systemd/unit_watch.h"
#include "launcher/timeline.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

using nlohmann::ordered_json;

constexpr auto kUnitsPoll = std::chrono::milliseconds(100);
constexpr auto kFollowersLook =
    std::chrono::seconds(1);  // an `up` or `attach` is to see the end, too
constexpr Duration kUnitStop = std::chrono::seconds(60);  // TimeoutStopSec= of a unit that hangs
constexpr int kHungUp = 128 + SIGHUP;
constexpr mode_t kUnitLogMode = 0640;

// In the words of a unit: nothing depends on where it starts.
std::vector<UnitFile> plannedUnits(const cluster::JobSpec& job, PlanInput input,
                                   const fs::path& logs, int attempt) {
  input.cluster_file = fs::absolute(input.cluster_file).lexically_normal();
  input.binaries.psd = fs::absolute(input.binaries.psd).lexically_normal();
  input.binaries.workerd = fs::absolute(input.binaries.workerd).lexically_normal();
  return unitFiles(job, makePlan(job, input, {}), logs, attempt);
}

int printUnits(const UnitJob& units, const std::vector<UnitFile>& files, bool json) {
  const std::string systemctl = join(units.control().command(), " ");
  const std::vector<std::string> commands = {
      systemctl + " daemon-reload", systemctl + " start --no-block " + join(units.units(), " ")};
  if (json) {
    ordered_json said = {{"commands", commands}};
    for (const UnitFile& file : files)
      said["units"].push_back(
          {{"file", (units.control().folder() / file.name).string()}, {"text", file.text}});
    printEvent("plan", said);
    return 0;
  }
  std::string text;
  for (const UnitFile& file : files)
    text += "# " + (units.control().folder() / file.name).string() + "\n" + file.text + "\n";
  print(text + join(commands, "\n") + "\n");
  return 0;
}

// Before anything is written: what a unit could only say in its log.
void checkHosts(const cluster::JobSpec& job) {
  for (const auto& [id, task] : specsOf(job.cluster))
    if (!isThisHost(task.address.host))
      throw Error(
          ErrorCode::kBadConfig,
          fmt::format(
              "{} is on {}, and via systemd dtf-launch starts units of this host alone\n"
              "  tasks on several hosts: 'via: ssh', or the units of configs/systemd, which "
              "each host starts itself",
              id.name(), task.address.host));
  ListenSockets::open(specsOf(job.cluster), job.cluster.mayBeReached());
}

// They are there before their first line, so that whoever follows can open them.
void makeLogs(const cluster::JobSpec& job, const fs::path& logs, int attempt) {
  for (const TaskId id : allTasks(job.cluster)) {
    const fs::path file = logs / logFileName(id, attempt);
    const Fd log(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kUnitLogMode));
    if (!log.valid()) failWrite(file, errno);
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

int reportUnits(const cluster::JobSpec& job, const Options& options, const ordered_json& summary) {
  try {
    mergeTimelines(job.run_dir, allTasks(job.cluster));
  } catch (const Error& error) {
    printBounded(STDERR_FILENO, "dtf-launch: warning: no timeline.json: " + error.message() + "\n");
  }
  if (options.json)
    printEvent("summary", summary);
  else
    print(resultReport(summary, job.run_dir));
  return summary["exit_code"].get<int>();
}

// Of the tasks' own: launch.json belongs to the chief, so that it holds it as long as the job runs.
void takeRunFolder(const cluster::JobSpec& job, const Options& options) {
  if (const std::optional<LaunchRecord> other = runningLaunch(job.run_dir))
    throw Error(
        ErrorCode::kUnavailable,
        fmt::format("{} runs in {} already, pid {}: end it first (dtf-launch stop), or take "
                    "another --run-dir",
                    other->program, job.run_dir.string(), other->launcher));
  makeWritableFolder(job.run_dir / "logs");
  removeSummary(job.run_dir);
  removeTimelines(job.run_dir, allTasks(job.cluster));
  const std::string warning = rememberRun(job, options.cluster_file);
  if (!warning.empty()) printBounded(STDERR_FILENO, "dtf-launch: " + warning + "\n");
}

}  // namespace

int upAsUnits(const cluster::JobSpec& job, const Options& options, const PlanInput& input) {
  // It would be in the unit, for each start of the chief.
  if (options.fresh)
    throw Error(ErrorCode::kUsage,
                "--fresh is not for units, which systemd starts again\n  to start anew: another "
                "--run-dir, or move " +
                    (job.run_dir / "checkpoints").string() + " away");
  const UnitJob units(job);
  const fs::path logs = fs::absolute(job.run_dir / "logs").lexically_normal();
  Fd locked;  // until systemd has the units: two that start one job would both find the names free
  if (!options.dry_run) locked = units.lock();
  const int attempt = nextAttempt(logs);
  const std::vector<UnitFile> files = plannedUnits(job, input, logs, attempt);
  if (options.dry_run) return printUnits(units, files, options.json);
  units.checkFree();
  checkHosts(job);
  takeRunFolder(job, options);
  makeLogs(job, logs, attempt);
  const bool quiet = options.verbosity == Verbosity::kQuiet;
  const std::string warning = units.control().warning();
  if (!warning.empty()) printBounded(STDERR_FILENO, "dtf-launch: " + warning + "\n");
  if (!quiet)
    printBounded(STDERR_FILENO, "dtf-launch: " + startText(job, job.run_dir / "logs") + "\n");
  UnitFollower follower(job, options, units, attempt, true);
  units.start(files);
  locked.reset();
  if (follower.run(options.detach)) {
    if (follower.hungUp()) return kHungUp;
    sayDetached(job, options);
    return 0;
  }
  const ordered_json summary = follower.finish();
  units.removeEnded();
  return reportUnits(job, options, summary);
}

bool stopUnits(const cluster::JobSpec& job, const fs::path& run_dir) {
  if (job.launch.via != cluster::LaunchSpec::Via::kSystemd) return false;
  const UnitJob units(job);
  units.checkOwn(run_dir / "logs");
  if (!units.isAlive()) {
    units.removeEnded();  // what a job has left that nobody followed to its end
    return false;
  }
  units.stop();
  const SystemClock clock;
  const Duration limit = stopLimit(job) + kUnitStop;
  const TimePoint deadline = clock.now() + limit;
  UnitWatch watch(
      job.job, [&units] { return units.states(); }, clock);
  for (;;) {
    const std::optional<std::vector<UnitState>> states = watch.look();
    if (states && allEnded(*states)) break;
    if (clock.now() > deadline)
      throw Error(
          ErrorCode::kDeadline,
          fmt::format("the units of {0} have not ended within {1:.0f} s, longer than they may "
                      "take\n  unsaved, and at once: {2} kill --signal=KILL 'dtf-{0}@*'",
                      job.job, toSeconds(limit), join(units.control().command(), " ")));
    std::this_thread::sleep_for(kUnitsPoll);
  }
  std::this_thread::sleep_for(kFollowersLook);
  units.removeEnded();
  return true;
}

bool showUnits(cluster::JobSpec job, const Options& options, const fs::path& run_dir) {
  if (job.launch.via != cluster::LaunchSpec::Via::kSystemd) return false;
  const UnitJob units(job);
  if (!units.isAlive()) return false;
  units.checkOwn(run_dir / "logs");
  job.run_dir = run_dir;
  UnitFollower(job, options, units, launchAttempt(run_dir), false).run(false);
  return true;
}

}  // namespace dtf::launcher
