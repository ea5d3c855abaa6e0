#include "daemons/workerd/job_report.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/notify.h"

namespace dtf::workerd {

namespace {

nlohmann::json evaluationJson(const train::Evaluation& evaluation) {
  nlohmann::json json = {{"loss", evaluation.loss}};
  if (evaluation.accuracy) json["accuracy"] = *evaluation.accuracy;
  return json;
}

nlohmann::json checkpointJson(const train::CheckpointStatus& status) {
  nlohmann::json json = {
      {"last_step", nullptr}, {"saved", status.saved}, {"failed", status.failed}};
  if (status.last_step) json["last_step"] = *status.last_step;
  if (!status.degraded.empty()) json["degraded"] = status.degraded;
  return json;
}

nlohmann::json summariesJson(const summary::EventWriterStatus& status) {
  nlohmann::json json = {
      {"events", status.written}, {"dropped", status.dropped}, {"failed", status.failed}};
  if (!status.degraded.empty()) json["degraded"] = status.degraded;
  return json;
}

}  // namespace

void reportProgress(const train::Progress& progress, uint64_t steps) {
  if (!notifyEnabled()) return;
  nlohmann::json line = {{"event", "progress"},
                         {"step", progress.global_step},
                         {"steps", steps},
                         {"loss", progress.loss},
                         {"examples_per_second", progress.examples_per_second},
                         {"steps_per_second", progress.steps_per_second}};
  if (progress.evaluation && progress.evaluation->accuracy)
    line["eval_accuracy"] = *progress.evaluation->accuracy;
  notify(line);
}

void reportCheckpoint(const train::SavedCheckpoint& saved) {
  log::info("event=checkpoint step={} bytes={} seconds={:.3f} stall_ms={:.3f}", saved.global_step,
            saved.bytes, saved.seconds, saved.stall_seconds * 1e3);
  notify({{"event", "checkpoint"},
          {"step", saved.global_step},
          {"bytes", saved.bytes},
          {"seconds", saved.seconds},
          {"stall_seconds", saved.stall_seconds}});
}

void reportResult(const cluster::TaskOptions& task, const JobResult& job) {
  const train::TrainingResult& result = job.training;
  const std::optional<train::Evaluation>& evaluation = job.evaluation;
  const double steps_per_second =
      result.seconds > 0
          ? static_cast<double>(result.global_step - result.first_step_number) / result.seconds
          : 0;
  nlohmann::json json = {{"outcome", result.stopped ? "stopped" : "done"},
                         {"global_step", result.global_step},
                         {"final_loss", result.final_loss},
                         {"steps_per_second", steps_per_second},
                         {"examples_per_second", steps_per_second * result.examples_per_step},
                         {"parameters_digest", fmt::format("{:016x}", job.parameters_digest)}};
  if (job.checkpoints) json["checkpoint"] = checkpointJson(*job.checkpoints);
  if (job.summaries) json["summaries"] = summariesJson(*job.summaries);
  if (const std::optional<TimePoint> launched = launchedAt())
    json["first_step_seconds"] = toSeconds(result.first_step - *launched);
  if (evaluation) json["eval"] = evaluationJson(*evaluation);
  if (notifyEnabled()) {
    json["event"] = "result";
    return notify(json);
  }
  json["schema"] = 1;
  json["job"] = task.job.job;
  json["wall_seconds"] = job.wall_seconds;
  json["tasks"] = {
      {{"name", task.task.name()}, {"exit_code", 0}, {"restarts", 0}, {"cause", nullptr}}};
  makeWritableFolder(task.job.run_dir);
  atomicReplace(task.job.run_dir / "summary.json", json.dump(2) + "\n");
  fmt::print("{}: {} global steps, loss {:.4f}, {:.0f} steps/s\n",
             result.stopped ? "stopped" : "done", result.global_step, result.final_loss,
             steps_per_second);
  if (evaluation && evaluation->accuracy)
    fmt::print("accuracy {:.4f} on {} examples\n", *evaluation->accuracy, evaluation->examples);
  fmt::print("summary: {}\n", (task.job.run_dir / "summary.json").string());
  std::fflush(stdout);
}

}  // namespace dtf::workerd
