#include "launcher/summary.h"

#include "launcher/json_fields.h"

namespace dtf::launcher {

namespace {

Json resultOf(const JobSummary& summary) {
  if (!summary.result) return Json::object();
  Json result = Json::parseOrNull(summary.result->json);
  return result.isObject() ? result : Json::object();
}

// As far as it is known without a result.
Json progressOf(const JobSummary& summary) {
  const std::optional<ProgressNotice>& last = summary.progress.last();
  Json progress = Json::object();
  if (last)
    progress = {{"global_step", last->step},
                {"final_loss", orNull(last->loss)},
                {"examples_per_second", orNull(last->examples_per_second)},
                {"steps_per_second", orNull(summary.progress.stepsPerSecond())}};
  if (last && last->eval_accuracy) progress["eval"] = {{"accuracy", *last->eval_accuracy}};
  if (summary.checkpoint) progress["checkpoint"] = {{"last_step", *summary.checkpoint}};
  return progress;
}

bool isOutcome(const std::string& text, Outcome outcome) {
  return text == outcomeName(outcome);
}

}  // namespace

JobSummary summarize(const std::string& job, const TaskMonitor& monitor, double wall_seconds) {
  JobSummary summary;
  summary.end.job = job;
  summary.end.outcome = outcomeName(monitor.outcome());
  summary.end.exit_code = monitor.jobExitCode();
  summary.end.wall_seconds = wall_seconds;
  summary.serves = monitor.serves();
  for (size_t task = 0; task < monitor.size(); ++task) {
    TaskEnd entry{monitor.id(task).name(), std::nullopt, monitor.cause(task),
                  monitor.restarts(task)};
    if (monitor.exit(task)) entry.exit_code = monitor.exit(task)->shellCode();
    summary.end.tasks.push_back(std::move(entry));
  }
  return summary;
}

Json summaryJson(const JobSummary& summary) {
  const Json result = resultOf(summary);
  const std::string told = textOf(result, "outcome");
  JobEnd end = summary.end;
  if (isOutcome(end.outcome, Outcome::kDone) && isOutcome(told, Outcome::kStopped)) {
    end.outcome = told;
  } else if (isOutcome(end.outcome, Outcome::kStopped) && isOutcome(told, Outcome::kDone)) {
    end.outcome = told;
    end.exit_code = 0;
  }
  Json reached = progressOf(summary);
  reached.update(result);
  Json json = dtf::summaryJson(end, reached);
  json["attempt"] = summary.attempt;
  if (summary.serves) json["serves"] = true;
  if (!summary.model.empty()) json["model"] = summary.model;
  return json;
}

}  // namespace dtf::launcher
