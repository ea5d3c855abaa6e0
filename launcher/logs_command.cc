// dtf-launch logs: what the tasks said, merged by time.

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/base/error.h"
#include "common/base/print.h"
#include "launcher/commands.h"
#include "launcher/find_run.h"
#include "launcher/launch_plan.h"
#include "launcher/log_fanin.h"
#include "launcher/log_merge.h"
#include "launcher/output.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

constexpr auto kPoll = std::chrono::milliseconds(200);

std::vector<TaskId> tasksNamed(const cluster::JobSpec& job, const std::vector<std::string>& names) {
  const std::vector<TaskId> all = allTasks(job.cluster);
  if (names.empty()) return all;
  std::vector<TaskId> chosen;
  for (const std::string& name : names) {
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&name](const TaskId id) { return id.name() == name; });
    if (found == all.end())
      throw Error(ErrorCode::kUsage, "the job has no task '" + name +
                                         "'\n  list its tasks: dtf-launch check CLUSTER.yaml");
    chosen.push_back(*found);
  }
  return chosen;
}

// Of the newest attempt.
struct OpenLogs {
  LogMerge merge;
  std::vector<std::string> names;
  size_t width = 0;
};

OpenLogs openLogs(const fs::path& folder, const std::vector<TaskId>& tasks) {
  OpenLogs logs;
  const int attempt = newestAttempt(folder);
  for (const TaskId id : tasks) {
    const fs::path file = folder / logFileName(id, attempt);
    std::error_code ignored;
    if (!fs::exists(file, ignored)) continue;
    logs.merge.add(file);
    logs.names.push_back(id.name());
    logs.width = std::max(logs.width, id.name().size());
  }
  return logs;
}

// "time" is the line's own; that of printing it stands in where the line has none.
nlohmann::ordered_json logFields(const std::string& task, const std::string& line) {
  nlohmann::ordered_json fields = {{"task", task}, {"line", line}};
  if (timeOfLine(line)) fields["time"] = line.substr(0, kTimeBytes);
  return fields;
}

}  // namespace

int logs(const cluster::JobSpec& job, const Options& options) {
  const FoundRun run = findRun(job, options);
  OpenLogs logs = openLogs(run.folder / "logs", tasksNamed(job, options.tasks));
  if (logs.names.empty())
    throw Error(ErrorCode::kBadData, "no log in " + (run.folder / "logs").string() +
                                         "\n  run the job: dtf-launch " +
                                         shellQuote(options.cluster_file.string()));
  const auto show = [&](const LogLine& line) {
    std::string name = logs.names[line.source];
    if (options.json) return printEvent("log", logFields(name, line.text));
    name.resize(logs.width, ' ');
    print(name + " | " + line.text + "\n");
  };
  for (;;) {
    const bool more = options.follow && runningLaunch(run.folder).has_value();
    logs.merge.read(!more, show);
    if (!more) return 0;
    std::this_thread::sleep_for(kPoll);
  }
}

}  // namespace dtf::launcher
