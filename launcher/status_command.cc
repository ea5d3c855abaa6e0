// dtf-launch status: how far the job is, or how it ended. What dtf-launch knows of it lies in
// files; the tasks are asked, too: they know who is awaited, and a job by hand has no such files.

#include <fmt/core.h>

#include <map>
#include <optional>
#include <vector>

#include "common/base/json.h"
#include "common/base/print.h"
#include "common/base/process_identity.h"
#include "common/base/run_lock.h"
#include "common/base/text.h"
#include "launcher/commands.h"
#include "launcher/find_run.h"
#include "launcher/json_fields.h"
#include "launcher/launch_plan.h"
#include "launcher/live_status.h"
#include "launcher/live_tasks.h"
#include "launcher/output.h"
#include "launcher/process_state.h"
#include "launcher/progress.h"
#include "launcher/systemd/unit_commands.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

// Without what the job does not measure.
std::string evaluationRow(const Json& eval) {
  std::vector<std::string> parts;
  if (const auto accuracy = numberOf(eval, "accuracy"))
    parts.push_back(fmt::format("accuracy {:.4f}", *accuracy));
  if (const auto loss = numberOf(eval, "loss")) parts.push_back("loss " + countText(*loss));
  for (const auto& [name, value] : metricsOf(eval))
    parts.push_back(fmt::format("{} {:.4f}", name, value));
  return fmt::format("step {}: {}", countOf(eval, "step").value_or(0), join(parts, ", "));
}

// A number of another host says nothing here, and one that was given again is another process's.
std::string stateOf(const LiveTask& task) {
  if (!task.host.empty()) return "on " + printable(task.host);
  if (!isSameProcess(task.pid, task.start_ticks)) return "ended";
  return isSuspended(task.pid) ? "suspended" : "running";
}

Json tasksJson(const std::vector<LiveTask>& tasks) {
  Json list = Json::array();
  for (const LiveTask& task : tasks)
    list.push_back(Json{{"name", task.name},
                        {"pid", task.pid > 0 ? Json(task.pid) : Json(nullptr)},
                        {"state", task.pid > 0 ? Json(stateOf(task)) : Json(nullptr)},
                        {"answer", task.answer}});
  return list;
}

// "1 joined, 1 lost" of the states that a ps has its workers in.
std::string workersText(const Json& workers) {
  std::map<std::string, int> counts;
  for (const auto& [name, state] : workers.members())
    if (state.isString()) ++counts[state.asString()];
  std::vector<std::string> parts;
  for (const auto& [state, count] : counts)
    parts.push_back(fmt::format("{} {}", count, printable(state)));
  return join(parts, ", ");
}

// Of a task that serves.
std::string servedText(const Json& answer) {
  const Json* const sessions = answer.find("sessions");
  const size_t open = sessions != nullptr && sessions->isArray() ? sessions->size() : 0;
  return fmt::format("serves {} session{}, {} variable{} ({})", open, open == 1 ? "" : "s",
                     countOf(answer, "variables").value_or(0),
                     countOf(answer, "variables").value_or(0) == 1 ? "" : "s",
                     bytesText(countOf(answer, "variable_bytes").value_or(0)));
}

// What a ps or a worker has answered, in a line.
std::string answerText(const LiveTask& task) {
  const Json& answer = task.answer;
  if (answer.isNull() && task.pid > 0 && task.host.empty() && isOutOfReach(task.pid))
    return "is another user's, and answers that user and root alone";
  if (answer.isNull()) return "doesn't answer";
  if (answer.contains("serves")) return servedText(answer);
  std::vector<std::string> parts;
  const uint64_t step = countOf(answer, "global_step").value_or(0);
  parts.push_back(fmt::format("step {}", step));
  if (const auto loss = numberOf(answer, "loss"); loss && step > 0)
    parts.push_back("loss " + countText(*loss));
  if (const Json* const workers = answer.find("workers"); workers != nullptr && workers->isObject())
    parts.push_back("workers: " + workersText(*workers));
  if (const auto stale = countOf(answer, "gradients_stale"); stale.value_or(0) > 0)
    parts.push_back(fmt::format("{} gradients stale", *stale));
  if (const auto staleness = countOf(answer, "staleness_max"); staleness.value_or(0) > 0)
    parts.push_back(fmt::format("staleness at most {}", *staleness));
  if (const std::string awaited = textOf(answer, "awaited"); !awaited.empty())
    parts.push_back("waiting for " + printable(awaited));
  return join(parts, "; ");
}

std::string runningText(const FoundRun& run, bool has_units, const std::string& job,
                        const Json& live, const std::vector<LiveTask>& tasks) {
  std::string text =
      run.running ? fmt::format("{}: running, {} has pid {}{}\n  folder      {}\n", job,
                                run.running->program, run.running->launcher,
                                onHostText(*run.running), run.folder.string())
      : has_units
          ? fmt::format("{0}: running, as units of systemd, dtf-{0}@*\n  folder      {1}\n", job,
                        run.folder.string())
          : job + ": running, started by another user or on another host: its tasks answer\n";
  const auto row = [&text](const char* label, const std::string& value) {
    if (!value.empty()) text += fmt::format("  {:<10}  {}\n", label, value);
  };
  row("progress", textOf(live, "line"));
  if (const Json* const eval = live.find("eval"); eval != nullptr && eval->isObject())
    row("evaluation", evaluationRow(*eval));
  if (const auto step = countOf(live, "checkpoint_step"))
    row("checkpoint", fmt::format("step {}", *step));
  row("as of", textOf(live, "time"));
  for (const LiveTask& task : tasks)
    row(task.name.c_str(),
        (task.pid > 0 ? fmt::format("pid {}  {}  ", task.pid, stateOf(task)) : "") +
            answerText(task));
  return text;
}

// How the last run ended.
std::string lastText(const FoundRun& run, const std::string& job, const Json& last) {
  std::string text = job + ": not running in " + run.folder.string() + "\n";
  std::error_code ignored;
  const std::string outcome = textOf(last, "outcome");
  const LaunchRecord launch = lastLaunch(run.folder);
  // A file system may keep the locks of each host to itself.
  if (const std::string where = onHostText(launch); outcome.empty() && !where.empty())
    return fmt::format(
        "{}  last run   {}, pid {}: whether it still runs, 'dtf-launch status' says "
        "there\n",
        text, where, launch.launcher);
  if (outcome.empty())
    return text +
           (fs::exists(run.folder / "launch.json", ignored)
                ? "  last run    ended without a word: its launcher was killed\n"
                : "  last run    none: nothing has run there, nor elsewhere from this file\n");
  text += "  last run    " + outcome;
  if (const auto step = countOf(last, "global_step")) text += fmt::format(" at step {}", *step);
  if (const auto code = countOf(last, "exit_code")) text += fmt::format(", exit code {}", *code);
  if (const std::string ended = textOf(last, "ended"); !ended.empty()) text += ", " + ended;
  if (readOwnSummary(run.folder).empty())
    text += "\n  since then  a start that was refused: less " +
            shellQuote((run.folder / "logs").string());
  return text + "\n";
}

}  // namespace

int status(const cluster::JobSpec& job, const Options& options,
           const net::Credentials& credentials) {
  const FoundRun run = findRun(job, options);
  Json live = run.running ? readStatus(run.folder) : Json::object();
  std::vector<LiveTask> tasks;
  const bool has_units = !run.running && UnitReader(job, run.folder).bring() == UnitsLife::kSome;
  if (run.running || has_units)
    tasks = askTasks(job.cluster, run.running.value_or(LaunchRecord()), credentials);
  else if (!options.run_dir)
    tasks = askUnknownRun(job, credentials);
  const bool is_running = run.running || !tasks.empty();
  if (is_running && live.empty()) live = progressOf(tasks);
  const Json last = is_running ? Json::object() : readSummary(run.folder);
  if (options.json)
    printEvent("status",
               {{"job", job.job},
                {"run_dir", run.running || has_units || !is_running ? Json(run.folder.string())
                                                                    : Json(nullptr)},
                {"running", is_running},
                {"progress", live.empty() ? Json(nullptr) : live},
                {"last", last.empty() ? Json(nullptr) : last},
                {"tasks", tasksJson(tasks)}});
  else
    print(is_running ? runningText(run, has_units, job.job, live, tasks)
                     : lastText(run, job.job, last));
  return is_running ? 0 : kNotRunning;
}

}  // namespace dtf::launcher
