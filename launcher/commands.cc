#include "launcher/commands.h"

#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "launcher/binaries.h"
#include "launcher/launch_plan.h"
#include "launcher/listen_sockets.h"
#include "launcher/log_fanin.h"
#include "launcher/monitor_limits.h"
#include "launcher/run_folder.h"
#include "launcher/session.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

using nlohmann::ordered_json;

constexpr int kNotRunning = 3;  // as `systemctl status` answers

bool isAlive(pid_t pid) {
  return pid > 0 && (::kill(pid, 0) == 0 || errno == EPERM);
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
}
void print(const ordered_json& json) {
  print(json.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

// The log of the newest attempt; empty when there is none.
fs::path newestLog(const fs::path& folder, TaskId id) {
  fs::path newest;
  for (int attempt = 1; fs::exists(folder / logFileName(id, attempt)); ++attempt)
    newest = folder / logFileName(id, attempt);
  return newest;
}

std::vector<TaskId> tasksNamed(const cluster::JobSpec& job, const std::vector<std::string>& names) {
  const std::vector<TaskId> all = allTasks(job.cluster);
  if (names.empty()) return all;
  std::vector<TaskId> chosen;
  for (const std::string& name : names) {
    const size_t before = chosen.size();
    for (const TaskId id : all)
      if (id.name() == name) chosen.push_back(id);
    if (chosen.size() == before)
      throw Error(ErrorCode::kUsage, "the job has no task '" + name +
                                         "'\n  list its tasks: dtf-launch check CLUSTER.yaml");
  }
  return chosen;
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
  if (!options.dry_run) return launch(job, launch_options);
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
    print(ordered_json{{"schema", 1},
                       {"event", "check"},
                       {"job", job.job},
                       {"parameters", size.parameters},
                       {"ps_bytes", size.ps_bytes},
                       {"memory_bytes", size.memory_bytes},
                       {"tasks", tasks}});
  else
    print(text);
  return 0;
}

int status(const cluster::JobSpec& job, const Options& options) {
  const std::optional<LaunchRecord> record = runningLaunch(job.run_dir);
  ordered_json tasks = ordered_json::array();
  std::string text = job.job +
                     (record ? ": running, dtf-launch has pid " + std::to_string(record->launcher)
                             : ": not running in " + job.run_dir.string()) +
                     "\n";
  for (const auto& [name, pid] : record ? record->tasks : LaunchRecord().tasks) {
    const std::string state = isAlive(pid) ? "running" : "ended";
    tasks.push_back(ordered_json{{"name", name}, {"pid", pid}, {"state", state}});
    text += "  " + name + "  pid " + std::to_string(pid) + "  " + state + "\n";
  }
  if (options.json)
    print(ordered_json{{"schema", 1},
                       {"event", "status"},
                       {"job", job.job},
                       {"running", record.has_value()},
                       {"tasks", tasks}});
  else
    print(text);
  return record ? 0 : kNotRunning;
}

int logs(const cluster::JobSpec& job, const Options& options) {
  bool found = false;
  for (const TaskId id : tasksNamed(job, options.tasks)) {
    const fs::path file = newestLog(job.run_dir / "logs", id);
    if (file.empty()) continue;
    found = true;
    std::ifstream stream(file, std::ios::binary);
    std::cout << "==> " << file.string() << " <==\n" << std::flush;
    if (stream.peek() != std::ifstream::traits_type::eof())
      std::cout << stream.rdbuf() << std::flush;
  }
  if (!found)
    throw Error(ErrorCode::kBadData, "no log in " + (job.run_dir / "logs").string() +
                                         "\n  run the job: dtf-launch " +
                                         shellQuote(options.cluster_file.string()));
  return 0;
}

int stop(const cluster::JobSpec& job) {
  const Duration limit = stopLimit(job);
  const auto deadline = std::chrono::steady_clock::now() + limit;
  std::optional<LaunchRecord> record = runningLaunch(job.run_dir);
  if (!record) {
    print(job.job + ": not running in " + job.run_dir.string() + "\n");
    return 0;
  }
  const pid_t launcher = record->launcher;
  if (launcher <= 0 || ::kill(launcher, SIGTERM) != 0)
    throw Error(errno == EPERM ? ErrorCode::kPermission : ErrorCode::kUnavailable,
                "cannot signal the launcher of " + job.run_dir.string() + ", pid " +
                    std::to_string(launcher) + ": " + errnoText(errno));
  while (record && record->launcher == launcher) {
    if (std::chrono::steady_clock::now() > deadline)
      throw Error(
          ErrorCode::kDeadline,
          fmt::format("dtf-launch, pid {}, has not ended within {:.0f} s, longer than it may "
                      "take\n  unsaved, and at once: kill -KILL {}",
                      launcher, toSeconds(limit), launcher));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    record = runningLaunch(job.run_dir);
  }
  print(job.job + ": stopped\n");
  return 0;
}

}  // namespace dtf::launcher
