// dtf-launch status: how far the job is, or how it ended.

#include <fmt/core.h>

#include <optional>
#include <vector>

#include "common/base/print.h"
#include "common/base/text.h"
#include "launcher/commands.h"
#include "launcher/find_run.h"
#include "launcher/json_fields.h"
#include "launcher/live_status.h"
#include "launcher/output.h"
#include "launcher/process_state.h"
#include "launcher/progress.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

using nlohmann::ordered_json;

// Without what the job does not measure.
std::string evaluationRow(const ordered_json& eval) {
  std::vector<std::string> parts;
  if (const auto accuracy = numberOf(eval, "accuracy"))
    parts.push_back(fmt::format("accuracy {:.4f}", *accuracy));
  if (const auto loss = numberOf(eval, "loss")) parts.push_back("loss " + countText(*loss));
  for (const auto& [name, value] : metricsOf(eval))
    parts.push_back(fmt::format("{} {:.4f}", name, value));
  return fmt::format("step {}: {}", countOf(eval, "step").value_or(0), join(parts, ", "));
}

std::string stateOf(pid_t pid) {
  return !isAlive(pid) ? "ended" : isSuspended(pid) ? "suspended" : "running";
}

ordered_json tasksJson(const LaunchRecord& record) {
  ordered_json tasks = ordered_json::array();
  for (const auto& [name, pid] : record.tasks)
    tasks.push_back(ordered_json{{"name", name}, {"pid", pid}, {"state", stateOf(pid)}});
  return tasks;
}

std::string runningText(const FoundRun& run, const std::string& job, const ordered_json& live) {
  std::string text = fmt::format("{}: running, {} has pid {}\n  folder      {}\n", job,
                                 run.running->program, run.running->launcher, run.folder.string());
  const auto row = [&text](const char* label, const std::string& value) {
    if (!value.empty()) text += fmt::format("  {:<10}  {}\n", label, value);
  };
  row("progress", textOf(live, "line"));
  if (const auto eval = live.find("eval"); eval != live.end() && eval->is_object())
    row("evaluation", evaluationRow(*eval));
  if (const auto step = countOf(live, "checkpoint_step"))
    row("checkpoint", fmt::format("step {}", *step));
  row("as of", textOf(live, "time"));
  for (const auto& [name, pid] : run.running->tasks)
    row(name.c_str(), fmt::format("pid {}  {}", pid, stateOf(pid)));
  return text;
}

// How the last run ended.
std::string lastText(const FoundRun& run, const std::string& job, const ordered_json& last) {
  std::string text = job + ": not running in " + run.folder.string() + "\n";
  std::error_code ignored;
  const std::string outcome = textOf(last, "outcome");
  if (outcome.empty())
    return text +
           (fs::exists(run.folder / "launch.json", ignored)
                ? "  last run    ended without a word: its launcher was killed\n"
                : "  last run    none: nothing has run there, nor elsewhere from this file\n");
  text += "  last run    " + outcome;
  if (const auto step = countOf(last, "global_step")) text += fmt::format(" at step {}", *step);
  if (const auto code = countOf(last, "exit_code")) text += fmt::format(", exit code {}", *code);
  if (const std::string ended = textOf(last, "ended"); !ended.empty()) text += ", " + ended;
  return text + "\n";
}

}  // namespace

int status(const cluster::JobSpec& job, const Options& options) {
  const FoundRun run = findRun(job, options);
  const ordered_json live = run.running ? readStatus(run.folder) : ordered_json::object();
  const ordered_json last = run.running ? ordered_json::object() : readSummary(run.folder);
  if (options.json)
    printEvent("status",
               {{"job", job.job},
                {"run_dir", run.folder.string()},
                {"running", run.running.has_value()},
                {"progress", live.empty() ? ordered_json(nullptr) : live},
                {"last", last.empty() ? ordered_json(nullptr) : last},
                {"tasks", run.running ? tasksJson(*run.running) : ordered_json::array()}});
  else
    print(run.running ? runningText(run, job.job, live) : lastText(run, job.job, last));
  return run.running ? 0 : kNotRunning;
}

}  // namespace dtf::launcher
