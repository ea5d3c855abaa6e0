#include "launcher/commands.h"

#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/print.h"
#include "launcher/binaries.h"
#include "launcher/detach.h"
#include "launcher/find_run.h"
#include "launcher/launch_plan.h"
#include "launcher/listen_sockets.h"
#include "launcher/live_status.h"
#include "launcher/monitor_limits.h"
#include "launcher/output.h"
#include "launcher/session.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

using nlohmann::ordered_json;

// Whether the run in `folder` of `launcher` has ended.
bool hasEnded(const fs::path& folder, pid_t launcher) {
  const std::optional<LaunchRecord> record = runningLaunch(folder);
  return !record || record->launcher != launcher;
}

// Errors: kPermission; kUnavailable.
void askToStop(const FoundRun& run) {
  const pid_t launcher = run.running->launcher;
  if (launcher > 0 && ::kill(launcher, SIGTERM) == 0) return;
  throw Error(errno == EPERM ? ErrorCode::kPermission : ErrorCode::kUnavailable,
              fmt::format("cannot signal {} of {}, pid {}: {}", run.running->program,
                          run.folder.string(), launcher, errnoText(errno)));
}

// "stopped at step 4210, saved": from the summary of the run that was stopped.
std::string endText(const ordered_json& summary) {
  std::string text = summary.value("outcome", "ended without a word");
  const auto step = summary.find("global_step");
  if (step != summary.end() && step->is_number()) text += " at step " + step->dump();
  if (summary.value("outcome", "") == outcomeName(Outcome::kStopped)) text += ", saved";
  return text;
}

}  // namespace

int up(const cluster::JobSpec& job, const Options& options, const fs::path& own_folder) {
  const char* path = std::getenv("PATH");
  LaunchOptions launch_options;
  launch_options.plan = PlanInput{options.cluster_file,
                                  options.overrides,
                                  options.run_dir,
                                  options.log_level,
                                  findBinaries(options.bin_dir, own_folder, path ? path : ""),
                                  fs::current_path(),
                                  options.fresh};
  launch_options.json = options.json;
  launch_options.color = options.color;
  launch_options.verbosity = options.verbosity;
  if (!options.dry_run) {
    // Not before: a launch that is refused must not take the place of the one that runs there.
    launch_options.on_held = [&] { return rememberRun(job, options.cluster_file); };
    return options.detach ? launchDetached(job, launch_options, options.cluster_file)
                          : launch(job, launch_options);
  }
  const ListenSockets sockets = ListenSockets::open(job.cluster, true);
  const auto plan = makePlan(job, launch_options.plan, sockets.chosen());
  print(options.json ? planJson(plan) : planText(plan));
  return 0;
}

int check(const cluster::JobSpec& job, const train::JobSize& size, const Options& options) {
  ordered_json tasks = ordered_json::array();
  std::string text = options.cluster_file.string() + ": OK: job " + job.job +
                     "\n  model: " + train::sizeText(size) + "\n";
  for (const TaskId id : allTasks(job.cluster)) {
    const std::string address = job.cluster.tasks(id.job)[id.index].address.str();
    tasks.push_back(ordered_json{{"name", id.name()}, {"address", address}});
    text += "  " + id.name() + "  " + address + "\n";
  }
  if (options.json)
    printEvent("check", {{"job", job.job},
                         {"parameters", size.parameters},
                         {"ps_bytes", size.ps_bytes},
                         {"memory_bytes", size.memory_bytes},
                         {"tasks", tasks}});
  else
    print(text);
  return 0;
}

int stop(const cluster::JobSpec& job, const Options& options) {
  const FoundRun run = findRun(job, options);
  if (!run.running) {
    if (options.json)
      printEvent("stop",
                 {{"job", job.job}, {"run_dir", run.folder.string()}, {"was_running", false}});
    else
      print(fmt::format("{}: not running in {}, nor elsewhere from {}\n", job.job,
                        run.folder.string(), options.cluster_file.string()));
    return 0;
  }
  const Duration limit = stopLimit(job);
  const SystemClock clock;
  const TimePoint deadline = clock.now() + limit;
  askToStop(run);
  while (!hasEnded(run.folder, run.running->launcher)) {
    if (clock.now() > deadline)
      throw Error(ErrorCode::kDeadline,
                  fmt::format("{}, pid {}, has not ended within {:.0f} s, longer than it may take\n"
                              "  unsaved, and at once: kill -KILL {}",
                              run.running->program, run.running->launcher, toSeconds(limit),
                              run.running->launcher));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const ordered_json summary = readSummary(run.folder);
  if (options.json)
    printEvent("stop", {{"job", job.job},
                        {"run_dir", run.folder.string()},
                        {"was_running", true},
                        {"summary", summary.empty() ? ordered_json(nullptr) : summary}});
  else
    print(job.job + ": " + endText(summary) + "\n");
  return 0;
}

}  // namespace dtf::launcher
