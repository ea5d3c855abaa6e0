// dtf-launch status: how far the job is, or how it ended. What dtf-launch knows of it lies in
// files; the tasks are asked, too: they know who is awaited, and a job by hand has no such files.

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "common/base/check.h"
#include "common/base/json.h"
#include "common/base/print.h"
#include "common/base/process_identity.h"
#include "common/base/run_lock.h"
#include "common/base/text.h"
#include "common/replication/replication_rules.h"
#include "launcher/commands.h"
#include "launcher/find_run.h"
#include "launcher/json_fields.h"
#include "launcher/kept_checkpoints.h"
#include "launcher/launch_plan.h"
#include "launcher/live_status.h"
#include "launcher/live_tasks.h"
#include "launcher/notice.h"
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

// "3.1 ms a step: data 0.1, compute 2.1, send 0.4, wait 0.5" of a worker.
std::string phasesText(const Json& answer) {
  const Json* const phases = answer.find("step_ms");
  if (phases == nullptr || !phases->isObject()) return "";
  double sum = 0;
  std::vector<std::string> parts;
  for (const auto& [phase, milliseconds] : phases->members()) {
    if (!milliseconds.isNumber() || milliseconds.asDouble() <= 0) continue;
    sum += milliseconds.asDouble();
    parts.push_back(printable(phase) + " " + countText(milliseconds.asDouble()));
  }
  if (parts.empty()) return "";
  DTF_CHECK(sum > 0);
  return fmt::format("{} ms a step: {}", countText(sum), join(parts, ", "));
}

uint32_t workersOf(const cluster::ClusterSpec& cluster) {
  return static_cast<uint32_t>(cluster.worker.size());
}

// The worker that the others wait for, or why there is none.
std::string slowestText(const cluster::JobSpec& job, const Json& live,
                        const std::vector<LiveTask>& tasks) {
  const auto is_answer = [](const LiveTask& task) { return !phasesText(task.answer).empty(); };
  if (!job.train || job.cluster.worker.size() < 2 || std::ranges::none_of(tasks, is_answer))
    return "";
  const cluster::ReplicationSpec spec =
      replication::completeReplication(job.train->replication, workersOf(job.cluster));
  if (const auto bound = replication::staleness(spec))
    return fmt::format("none: a worker waits only while it is more than {} steps ahead (bounded)",
                       *bound);
  if (!replication::sharesSteps(spec)) return "none: no worker waits for another (async)";
  if (!replication::awaitsAll(spec))
    return fmt::format("none: a step takes the first {} gradients of {} workers",
                       replication::gradientsPerStep(spec), workersOf(job.cluster));
  const std::optional<StragglerNotice> named = stragglerNow(job.cluster, live, tasks);
  return named ? stragglerText(*named) : "none stands out";
}

// What a ps or a worker has answered, in a line.
std::string answerText(const LiveTask& task) {
  const Json& answer = task.answer;
  if (answer.isNull() && task.pid > 0 && task.host.empty() && isOutOfReach(task.pid))
    return "belongs to another user, and answers only that user and root";
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
  if (const std::string phases = phasesText(answer); !phases.empty()) parts.push_back(phases);
  if (const Json* const now = answer.find("evaluating"); now != nullptr && *now == true)
    parts.push_back("evaluating");
  if (const std::string awaited = textOf(answer, "awaited"); !awaited.empty())
    parts.push_back("waiting for " + printable(awaited));
  return join(parts, "; ");
}

void addLine(std::string& text, std::string_view label, const std::string& value) {
  if (!value.empty()) text += fmt::format("  {:<10}  {}\n", label, value);
}

void addCheckpoints(std::string& text, const std::vector<KeptCheckpoint>& checkpoints) {
  std::string_view label = "kept";
  for (const std::string& row : checkpointRows(checkpoints)) {
    addLine(text, label, row);
    label = "";
  }
}

// A run of the same folder, started from another file.
std::string ofOtherFile(const FoundRun& run) {
  return run.other_file.empty() ? "" : printable(run.other_file.string()) + ", not this one";
}

std::string runningText(const FoundRun& run, bool has_units, const cluster::JobSpec& spec,
                        const Json& live, const std::vector<LiveTask>& tasks) {
  const std::string& job = spec.job;
  std::string text =
      run.running ? fmt::format("{}: running, {} has pid {}{}\n  folder      {}\n", job,
                                run.running->program, run.running->launcher,
                                onHostText(*run.running), run.folder.string())
      : has_units
          ? fmt::format(
                "{0}: running, as systemd units, dtf-{0}@*\n"
                "  folder      {1}\n",
                job, run.folder.string())
          : job + ": running, started by another user or on another host: its tasks answer\n";
  const auto row = [&text](std::string_view label, const std::string& value) {
    addLine(text, label, value);
  };
  row("progress", textOf(live, "line"));
  if (const Json* const eval = live.find("eval"); eval != nullptr && eval->isObject())
    row("evaluation", evaluationRow(*eval));
  if (const auto step = countOf(live, "checkpoint_step"))
    row("checkpoint", fmt::format("step {}", *step));
  row("as of", textOf(live, "time"));
  row("file", ofOtherFile(run));
  for (const LiveTask& task : tasks)
    row(task.name, (task.pid > 0 ? fmt::format("pid {}  {}  ", task.pid, stateOf(task)) : "") +
                       answerText(task));
  row("slowest", slowestText(spec, live, tasks));
  return text;
}

// "done at step 500, exit code 0, 2026-03-01T10:11:12+01:00"
std::string endedText(std::string text, const Json& last) {
  if (const auto step = countOf(last, "global_step")) text += fmt::format(" at step {}", *step);
  if (const auto code = countOf(last, "exit_code")) text += fmt::format(", exit code {}", *code);
  if (const std::string ended = textOf(last, "ended"); !ended.empty()) text += ", " + ended;
  return text;
}

// How the last run ended.
std::string lastText(const FoundRun& run, const std::string& job, const Json& last,
                     const std::string& logs) {
  std::string text = job + ": not running in " + run.folder.string() + "\n";
  std::error_code ignored;
  const std::string outcome = textOf(last, "outcome");
  const LaunchRecord launch = lastLaunch(run.folder);
  // A file system may keep the locks of each host to itself.
  if (const std::string where = onHostText(launch); outcome.empty() && !where.empty())
    return fmt::format(
        "{}  last run   {}, pid {}: run 'dtf-launch status' there to see whether it still runs\n",
        text, where, launch.launcher);
  if (outcome.empty() && !fs::exists(run.folder / "launch.json", ignored))
    return text + "  last run    none: no job has run there, nor elsewhere from this file\n";
  addLine(text, "last run",
          outcome.empty() ? "ended without a summary: its launcher was killed"
                          : endedText(outcome, last));
  addLine(text, "file", ofOtherFile(run));
  if (!outcome.empty() && launch.already_done)
    addLine(text, "since then", "a start that found it done already");
  else if (!outcome.empty() && readOwnSummary(run.folder).empty())
    addLine(text, "since then", "a start that was refused: " + logs);
  return text;
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
  const std::vector<KeptCheckpoint> kept = keptCheckpoints(job, run.folder);
  if (options.json)
    printEvent(
        "status",
        {{"job", job.job},
         {"run_dir",
          run.running || has_units || !is_running ? Json(run.folder.string()) : Json(nullptr)},
         {"running", is_running},
         {"other_file", run.other_file.empty() ? Json(nullptr) : Json(run.other_file.string())},
         {"progress", live.empty() ? Json(nullptr) : live},
         {"straggler", stragglerJson(stragglerNow(job.cluster, live, tasks))},
         {"last", last.empty() ? Json(nullptr) : last},
         {"checkpoints", checkpointsJson(kept)},
         {"tasks", tasksJson(tasks)}});
  else {
    std::string text = is_running ? runningText(run, has_units, job, live, tasks)
                                  : lastText(run, job.job, last, logsCommand(options));
    addCheckpoints(text, kept);
    print(text);
  }
  return is_running ? 0 : kNotRunning;
}

}  // namespace dtf::launcher
