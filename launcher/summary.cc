#include "launcher/summary.h"

#include <cmath>

#include "common/base/file.h"
#include "launcher/json_fields.h"

namespace dtf::launcher {

namespace {

using nlohmann::ordered_json;

// Rounded to a millisecond: the digits beyond are noise.
double rounded(double seconds) {
  return std::round(seconds * 1e3) / 1e3;
}

ordered_json resultOf(const JobSummary& summary) {
  if (!summary.result) return ordered_json::object();
  ordered_json result = ordered_json::parse(summary.result->json, nullptr, false);
  return result.is_object() ? result : ordered_json::object();
}

}  // namespace

JobSummary summarize(const std::string& job, const TaskMonitor& monitor, double wall_seconds) {
  JobSummary summary;
  summary.job = job;
  summary.outcome = monitor.outcome();
  summary.wall_seconds = wall_seconds;
  for (size_t task = 0; task < monitor.size(); ++task) {
    TaskSummary entry{monitor.id(task).name(), std::nullopt, 0, monitor.cause(task)};
    if (monitor.exit(task)) entry.exit_code = monitor.exit(task)->shellCode();
    summary.tasks.push_back(std::move(entry));
  }
  return summary;
}

ordered_json summaryJson(const JobSummary& summary) {
  const ordered_json result = resultOf(summary);
  const std::optional<ProgressNotice>& last = summary.progress.last();
  ordered_json eval = ordered_json::object();
  if (last && last->eval_accuracy) eval["accuracy"] = *last->eval_accuracy;

  // Every task ended well, but a signal to one of them had the job saved and ended early; or the
  // signal came when there was nothing left to stop.
  const bool stopped =
      summary.outcome == Outcome::kDone && result.value("outcome", "") == "stopped";
  const bool done = summary.outcome == Outcome::kStopped && isDone(summary);
  ordered_json json = {
      {"schema", 1},
      {"job", summary.job},
      {"outcome", stopped ? "stopped"
                  : done  ? "done"
                          : outcomeName(summary.outcome)},
      {"global_step", last ? ordered_json(last->step) : ordered_json(nullptr)},
      {"final_loss", last ? orNull(last->loss) : ordered_json(nullptr)},
      {"eval", eval},
      {"examples_per_second", last ? orNull(last->examples_per_second) : ordered_json(nullptr)},
      {"steps_per_second", orNull(summary.progress.stepsPerSecond())},
      {"wall_seconds", rounded(summary.wall_seconds)}};
  for (const auto& [key, value] : result.items())
    if (key != "schema" && key != "job" && key != "outcome" && key != "tasks") json[key] = value;

  if (summary.checkpoint && !json.contains("checkpoint"))
    json["checkpoint"] = {{"last_step", *summary.checkpoint}};

  ordered_json tasks = ordered_json::array();
  for (const TaskSummary& task : summary.tasks) {
    tasks.push_back(ordered_json{
        {"name", task.name},
        {"exit_code", orNull(task.exit_code)},
        {"restarts", task.restarts},
        {"cause", task.cause.empty() ? ordered_json(nullptr) : ordered_json(task.cause)}});
  }
  json["tasks"] = std::move(tasks);
  return json;
}

bool isDone(const JobSummary& summary) {
  return resultOf(summary).value("outcome", "") == "done";
}

void writeSummary(const std::filesystem::path& file, const ordered_json& summary) {
  atomicReplace(file, summary.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace dtf::launcher
