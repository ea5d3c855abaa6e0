// dtf-launch logs: what the tasks said, merged by time.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/json.h"
#include "common/base/print.h"
#include "common/base/text.h"
#include "launcher/commands.h"
#include "launcher/find_run.h"
#include "launcher/launch_plan.h"
#include "launcher/log_fanin.h"
#include "launcher/log_merge.h"
#include "launcher/output.h"
#include "launcher/systemd/unit_commands.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

constexpr auto kLogsPoll = std::chrono::milliseconds(200);

std::vector<TaskId> tasksNamed(const cluster::JobSpec& job, const Options& options) {
  const std::vector<TaskId> all = allTasks(job.cluster);
  if (options.tasks.empty()) return all;
  std::vector<TaskId> chosen;
  for (const std::string& name : options.tasks) {
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&name](const TaskId id) { return id.name() == name; });
    if (found == all.end())
      throw Error(ErrorCode::kUsage, "the job has no task '" + name +
                                         "'\n  list its tasks: dtf-launch check " +
                                         shellQuote(options.cluster_file.string()));
    chosen.push_back(*found);
  }
  return chosen;
}

// Those of the last launch: of each task one file for each of its processes, in their order.
// Owns: the open files.
// Threads: one. Blocks: on the disk.
class OpenLogs {
 public:
  OpenLogs(fs::path folder, const std::vector<TaskId>& tasks, int attempt)
      : folder_(std::move(folder)) {
    DTF_CHECK(attempt >= 0);
    for (const TaskId id : tasks) {
      next_.emplace_back(id, attempt);
      width_ = std::max(width_, id.name().size());
    }
    openNew();
  }

  // What tasks that were started again have begun to write since.
  void openNew() {
    for (auto& [id, attempt] : next_) {
      std::error_code ignored;
      for (fs::path file; fs::exists(file = folder_ / logFileName(id, attempt), ignored);
           ++attempt) {
        merge.add(file);
        names_.push_back(id.name());
      }
    }
  }

  bool empty() const { return names_.empty(); }
  // Of the tasks, each once.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const std::string& name : names_)
      if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
    return all;
  }
  const std::string& nameOf(const LogLine& line) const { return names_.at(line.source); }
  size_t width() const { return width_; }

  LogMerge merge;

 private:
  const fs::path folder_;
  std::vector<std::pair<TaskId, int>> next_;  // of each task the file that is not open yet
  std::vector<std::string> names_;            // of the sources of `merge`
  size_t width_ = 0;
};

// Of what is not that old yet the launcher may still have something earlier to write.
int64_t settledTime() {
  using std::chrono::milliseconds;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<milliseconds>(now - kLogsPoll).count();
}

// "time" is the line's own; that of printing it stands in where the line has none.
Json logFields(const std::string& task, const std::string& line) {
  Json fields = {{"task", task}, {"line", line}};
  if (timeOfLine(line)) fields["time"] = line.substr(0, kTimeBytes);
  return fields;
}

int listTasks(const std::vector<std::string>& names, bool json) {
  DTF_CHECK(!names.empty());
  if (json) {
    printEvent("tasks", {{"names", names}});
  } else {
    print(join(names, "\n") + "\n");
  }
  return 0;
}

}  // namespace

int logs(const cluster::JobSpec& job, const Options& options) {
  const FoundRun run = findRun(job, options);
  const fs::path folder = run.folder / "logs";
  UnitReader units(job, run.folder);
  units.bring();
  OpenLogs logs(folder, tasksNamed(job, options), launchAttempt(run.folder));
  const bool is_by_hand = run.running && run.running->program != LaunchRecord().program &&
                          job.launch.via != cluster::LaunchSpec::Via::kSystemd;
  if (is_by_hand)
    throw Error(ErrorCode::kUnavailable,
                job.job +
                    " was started by hand: its tasks write to their own terminals\n"
                    "  of units of systemd: journalctl -u 'dtf-*'" +
                    (logs.empty() ? "" : "\n  the logs of an earlier launch: " + folder.string()));
  if (logs.empty())
    throw Error(ErrorCode::kBadData, "no log in " + folder.string() +
                                         "\n  run the job: dtf-launch " +
                                         shellQuote(options.cluster_file.string()));
  if (options.list) return listTasks(logs.names(), options.json);
  const auto show = [&](const LogLine& line) {
    std::string name = logs.nameOf(line);
    if (options.json) return printEvent("log", logFields(name, line.text));
    name.resize(logs.width(), ' ');
    print(name + " | " + line.text + "\n");
  };
  for (;;) {
    const bool more = options.follow &&
                      (units.bring() != UnitsLife::kNone || runningLaunch(run.folder).has_value());
    logs.openNew();
    logs.merge.read(!more, settledTime(), show);
    if (!more) return 0;
    std::this_thread::sleep_for(kLogsPoll);
  }
}

std::string logsCommand(const Options& options) {
  std::string command = "dtf-launch logs " + shellQuote(options.cluster_file.string());
  if (options.run_dir) command += " --run-dir " + shellQuote(options.run_dir->string());
  return command;
}

}  // namespace dtf::launcher
