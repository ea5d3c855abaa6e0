#include "daemons/workerd/job_report.h"

#include <fmt/core.h>

#include <unistd.h>

#include <filesystem>
#include <future>
#include <memory>
#include <thread>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/job_summary.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/notify.h"
#include "common/base/print.h"
#include "common/base/run_registry.h"
#include "common/base/text.h"
#include "common/model/metrics.h"
#include "common/replication/phase_json.h"

namespace dtf::workerd {

namespace {

Json evaluationJson(const train::Evaluation& evaluation) {
  Json json = {{"loss", evaluation.loss}};
  if (evaluation.accuracy) json["accuracy"] = *evaluation.accuracy;
  for (const auto& [key, value] : json.members()) DTF_CHECK_MSG(model::isEvaluationKey(key), key);
  for (const train::MetricValue& metric : evaluation.metrics)
    json[metric.name] = orNull(metric.value);
  return json;
}

Json checkpointJson(const train::CheckpointStatus& status) {
  Json json = {{"last_step", nullptr}, {"saved", status.saved}, {"failed", status.failed}};
  if (status.last_step) json["last_step"] = *status.last_step;
  if (!status.degraded.empty()) json["degraded"] = status.degraded;
  return json;
}

// The step of its checkpoint, the metric that it is the best by, and the figures of its evaluation.
Json bestJson(const train::PastEvaluation& best, const std::string& metric) {
  Json json = {{"step", best.step}, {"checkpoint", best.checkpoint.value()}, {"metric", metric}};
  for (const auto& [key, value] : json.members()) DTF_CHECK_MSG(model::isEvaluationKey(key), key);
  for (const auto& [name, value] : best.values) json[name] = value;
  return json;
}

Json snapshotsJson(const train::SnapshotStatus& status) {
  Json json = {{"last_step", nullptr},
               {"kept", status.kept},
               {"bytes", status.bytes},
               {"longest_stall_ms", 1e3 * status.longest_stall}};
  if (status.last_step) json["last_step"] = *status.last_step;
  if (!status.off.empty()) json["degraded"] = status.off;
  return json;
}

Json summariesJson(const summary::EventWriterStatus& status) {
  Json json = {{"events", status.written}, {"dropped", status.dropped}, {"failed", status.failed}};
  if (!status.degraded.empty()) json["degraded"] = status.degraded;
  return json;
}

Json slowestJson(const train::Slowest& slowest) {
  return {{"worker", TaskId{JobKind::kWorker, slowest.rank}.name()},
          {"phase", replication::phaseName(slowest.phase)},
          {"steps", slowest.steps},
          {"seconds", slowest.seconds}};
}

// Global steps per second; nullopt without measured steps.
std::optional<double> stepsPerSecond(const train::TrainingResult& result) {
  if (result.batches == 0 || result.seconds <= 0) return std::nullopt;
  return static_cast<double>(result.global_step - result.first_step_number) / result.seconds;
}

Json resultJson(const JobResult& job) {
  const train::TrainingResult& result = job.training;
  const std::optional<double> rate = stepsPerSecond(result);
  const char* unfinished = job.checkpoints ? "stopped" : "interrupted";  // saved, unsaved
  Json json = {{"outcome", job.isDone() ? "done" : unfinished},
               {"global_step", result.global_step},
               {"final_loss", orNull(result.final_loss)},
               {"steps_per_second", orNull(rate)},
               {"examples_per_second", nullptr}};
  if (rate) json["examples_per_second"] = *rate * result.examples_per_step;
  if (job.parameters_digest)
    json["parameters_digest"] = fmt::format("{:016x}", *job.parameters_digest);
  if (result.slowest) json["slowest"] = slowestJson(*result.slowest);
  if (job.wasDone()) json["already_done"] = true;
  if (!job.ended_early.empty()) json["ended_early"] = job.ended_early;
  if (job.best) json["best"] = bestJson(*job.best, job.best_metric);
  if (job.checkpoints) json["checkpoint"] = checkpointJson(*job.checkpoints);
  if (job.snapshots) json["snapshots"] = snapshotsJson(*job.snapshots);
  if (job.summaries) json["summaries"] = summariesJson(*job.summaries);
  if (const std::optional<TimePoint> launched = launchedAt()) {
    json["first_step_seconds"] = nullptr;
    if (result.first_step) json["first_step_seconds"] = toSeconds(*result.first_step - *launched);
  }
  if (job.evaluation) json["eval"] = evaluationJson(*job.evaluation);
  if (!job.left_out.isNull()) json["left_out"] = job.left_out;
  return json;
}

// The JSON of a job without a result.
Json progressJson(const std::optional<train::Progress>& progress,
                  const std::optional<train::Evaluation>& evaluation) {
  Json json = Json::object();
  if (evaluation) json["eval"] = evaluationJson(*evaluation);
  if (!progress) return json;
  json["global_step"] = progress->global_step;
  json["final_loss"] = progress->loss;
  json["steps_per_second"] = progress->steps_per_second;
  json["examples_per_second"] = progress->examples_per_second;
  return json;
}

// Returns "done: 40 global steps, loss 0.4321, 812 steps/s" and the evaluation, as far as known.
std::string resultText(const Json& summary, const std::optional<JobResult>& result) {
  const auto number = [&summary](const char* key) {
    return summary[key].isNumber() ? std::optional(summary[key].asDouble()) : std::nullopt;
  };
  std::string line = summary["outcome"].asString();
  if (const auto steps = number("global_step"))
    line += fmt::format(": {:.0f} global steps", *steps);
  if (const auto loss = number("final_loss")) line += fmt::format(", loss {:.4f}", *loss);
  if (const auto rate = number("steps_per_second")) line += fmt::format(", {:.0f} steps/s", *rate);
  if (result && result->evaluation && result->evaluation->accuracy)
    line += fmt::format("\naccuracy {:.4f} on {}", *result->evaluation->accuracy,
                        amountText(static_cast<uint64_t>(result->evaluation->examples), "example"));
  return line + "\n";
}

}  // namespace

void reportModel(const graph::Placement& placement, const std::string& table) {
  std::string rows;
  for (const std::string& row : split(table, '\n'))
    if (!row.empty()) rows += "\n  " + row;
  log::info("event=placement variables={}{}", placement.variables.size(), rows);
  uint64_t parameters = 0;
  std::vector<uint64_t> ps_bytes(placement.ps_tasks);
  for (const graph::PlacedVariable& variable : placement.variables) {
    parameters += static_cast<uint64_t>(variable.shape.elements());
    for (const graph::VariablePart& part : variable.parts)
      ps_bytes.at(part.ps_task) += part.count * sizeof(float);
  }
  notify({{"event", "model"},
          {"variables", placement.variables.size()},
          {"parameters", parameters},
          {"ps_bytes", ps_bytes}});
}

void reportCheckpoint(const train::SavedCheckpoint& saved) {
  log::info("event=checkpoint step={} bytes={} seconds={:.3f} stall_ms={:.3f}", saved.global_step,
            saved.bytes, saved.seconds, saved.stall_seconds * 1e3);
  // The next line replaces it, so a launcher that doesn't read (Ctrl-Z) must not delay the saving.
  notifyIfRoom({{"event", "checkpoint"},
                {"step", saved.global_step},
                {"bytes", saved.bytes},
                {"seconds", saved.seconds},
                {"stall_seconds", saved.stall_seconds}});
}

void reportWentBack(const train::WentBack& back) {
  notify({{"event", "went_back"},
          {"step", back.step},
          {"steps_lost", back.steps_lost},
          {"snapshot", back.to_snapshot},
          {"reason", back.reason}});
}

void reportGoesOn(const train::GoesOn& start, uint64_t steps) {
  if (const std::optional<train::Resumed>& resumed = start.resumed)
    notify({{"event", "restored"},
            {"step", resumed->step},
            {"steps", steps},
            {"checkpoint", resumed->checkpoint.string()},
            {"saved", resumed->saved},
            {"changes", resumed->changes}});
  if (start.went_back) reportWentBack(*start.went_back);
}

namespace {

constexpr uint64_t kSummaryBytesMax = 1 << 20;

std::string readSummaryText(const std::filesystem::path& run_dir) {
  try {
    const std::filesystem::path file = summaryFile(run_dir);
    std::error_code ignored;
    return std::filesystem::exists(file, ignored) ? readFile(file, kSummaryBytesMax) : "";
  } catch (const Error& error) {
    log::warning("event=summary_unread reason=\"{}\"", error.message());
    return "";
  }
}

// Registers the run for dtf-launch's `status`, `stop` and `attach` in other folders.
void rememberRun(const cluster::TaskOptions& task) {
  if (task.cluster_file.empty()) return;
  const std::string warning = registerRun(
      {registeredPath(task.cluster_file), registeredPath(task.job.run_dir), task.job.job});
  if (!warning.empty()) log::warning("event=run_not_registered reason=\"{}\"", warning);
}

}  // namespace

JobReport::JobReport(const cluster::TaskOptions& task)
    : task_(task), writes_(task.task == kChief && !notifyEnabled()) {
  if (!writes_) return;
  lock_.emplace(
      task_.job.run_dir,
      LaunchRecord{task_.job.job, ::getpid(), {{task_.task.name(), ::getpid()}}, "workerd"});
  earlier_summary_ = readSummaryText(task_.job.run_dir);
  {
    const MutexLock lock(note_mutex_);
    note_ = daemons::RestartNote::ofEnvironment(task_.job);
    if (note_ && !task_.fresh) earlier_result_ = note_->result();
    if (earlier_result_.isNull()) removeSummary(task_.job.run_dir);
  }
  takeSummaryRoom(task_.job.run_dir);
  rememberRun(task_);
}

// A permanent line, in the log and for the launcher: the progress line is soon replaced.
void JobReport::evaluated(uint64_t step, const train::Evaluation& evaluation) {
  DTF_CHECK(task_.task == kChief && evaluation.examples > 0);
  {
    MutexLock lock(mutex_);
    evaluation_ = evaluation;
  }
  std::string accuracy;
  if (evaluation.accuracy) accuracy = fmt::format(" accuracy={:.4f}", *evaluation.accuracy);
  log::info("event=evaluated step={} loss={:.4f}{}{} examples={}", step, evaluation.loss, accuracy,
            train::metricsText(evaluation, " ", '='), evaluation.examples);
  Json line = evaluationJson(evaluation);
  line["event"] = "evaluation";
  line["step"] = step;
  line["examples"] = evaluation.examples;
  notify(line);
}

void JobReport::progress(const train::Progress& progress) {
  if (task_.task != kChief) return;
  if (progress.evaluation) evaluated(progress.global_step, *progress.evaluation);
  std::optional<train::Evaluation> evaluation;
  {
    MutexLock lock(mutex_);
    progress_ = progress;
    evaluation = evaluation_;
  }
  note(progress.global_step, nullptr);
  if (lock_ && !folder_lost_ && !lock_->held()) {
    folder_lost_ = true;
    log::warning("event=run_dir_lost reason=\"{}\"", lostFolderText(task_.job.run_dir));
  }
  if (!notifyEnabled()) return;
  Json line = {{"event", "progress"},
               {"step", progress.global_step},
               {"steps", progress.steps},
               {"loss", progress.loss},
               {"examples_per_second", progress.examples_per_second},
               {"steps_per_second", progress.steps_per_second},
               {"batches", progress.batches},
               {"exchange_seconds", progress.step_times.exchanges}};
  if (progress.straggler) line["straggler"] = replication::stragglerJson(progress.straggler);
  if (evaluation && evaluation->accuracy) line["eval_accuracy"] = *evaluation->accuracy;
  notifyIfRoom(line);
}

bool JobReport::note(uint64_t step, const Json& result) {
  const MutexLock lock(note_mutex_);
  if (!note_) return false;
  earlier_result_ = nullptr;  // the job is beyond it
  result.isNull() ? note_->reach(step) : note_->end(step, result);
  return true;
}

void JobReport::result(const JobResult& result) {
  if (task_.task != kChief) return;
  if (result.evaluation) evaluated(result.training.global_step, *result.evaluation);
  {
    MutexLock lock(mutex_);
    DTF_CHECK(!result_);
    result_ = result;
  }
  // The next process may continue a stopped job.
  const bool is_over = result.isDone() && !result.is_unsaved;
  if (is_over && note(result.training.global_step, resultJson(result))) keepResult();
  if (!notifyEnabled()) return;
  Json line = resultJson(result);
  line["event"] = "result";
  notify(line);
}

Json JobReport::summaryOf(const End& end) {
  std::optional<JobResult> result;
  Json reached, earlier;
  {
    const MutexLock lock(note_mutex_);
    earlier = earlier_result_;
  }
  {
    MutexLock lock(mutex_);
    result = result_;
    reached = progressJson(progress_, evaluation_);
  }
  if (result)
    reached.update(resultJson(*result));
  else if (end.outcome.empty() && earlier.isObject())
    reached = std::move(earlier);
  const std::string outcome = end.outcome.empty() ? reached["outcome"].asString() : end.outcome;
  return summaryJson({task_.job.job,
                      outcome,
                      end.exit_code,
                      toSeconds(clock_.now() - started_),
                      {{task_.task.name(), end.exit_code, end.cause}}},
                     reached);
}

void JobReport::write(const End& end) {
  const MutexLock one_writer(writing_mutex_);
  const Json summary = summaryOf(end);
  std::optional<JobResult> result;
  {
    MutexLock lock(mutex_);
    result = result_;
  }
  const std::filesystem::path& run_dir = task_.job.run_dir;
  writeSummary(run_dir, summary);
  releaseSummaryRoom(run_dir);
  const bool unsaved = end.outcome == "interrupted" && task_.job.savesNothing();
  dtf::print(resultText(summary, result) +
             (unsaved ? "nothing was saved: the job has 'checkpoint: none'\n" : "") +
             "summary: " + summaryFile(run_dir).string() + "\n");
}

void JobReport::keepResult() {
  try {
    const MutexLock one_writer(writing_mutex_);
    writeSummary(task_.job.run_dir, summaryOf({"", 0, ""}));
  } catch (const Error& error) {
    log::warning("event=summary_not_written reason=\"{}\"", error.message());
  }
}

bool JobReport::isOverWithout(const Error& error) {
  const ErrorCode code = error.code();
  const bool is_lost = code == ErrorCode::kUnavailable || code == ErrorCode::kDeadline ||
                       code == ErrorCode::kBadData;  // restarted ps hold no values
  const MutexLock lock(note_mutex_);
  return is_lost && earlier_result_.isObject();
}

void JobReport::done(int exit_code) {
  if (!writes_) return;
  if (exit_code != 0 || !wasDoneBefore()) return write({"", exit_code, ""});
  putBack();
  dtf::print(fmt::format("done already: nothing to do; --fresh begins anew\nsummary: {}\n",
                         summaryFile(task_.job.run_dir).string()));
}

// Compares the earlier run's summary, too: a run that was killed at its end has left none.
bool JobReport::wasDoneBefore() {
  const Json earlier = Json::parseOrNull(earlier_summary_);
  const MutexLock lock(mutex_);
  return result_ && result_->wasDone() && earlier.isObject() &&
         earlier.stringOr("outcome", "") == "done";
}

void JobReport::putBack() const {
  atomicReplace(summaryFile(task_.job.run_dir), earlier_summary_);
  releaseSummaryRoom(task_.job.run_dir);
}

bool JobReport::hasBegun() {
  const MutexLock lock(mutex_);
  return has_begun_;
}

void JobReport::begins() {
  const MutexLock lock(mutex_);
  has_begun_ = true;
}

void JobReport::failed(const Error& error) {
  if (!writes_) return;
  try {
    if (!earlier_summary_.empty() && !hasBegun()) return putBack();
    write({"failed", exitCode(error.code()), error.message()});
  } catch (const Error& unwritten) {
    log::warning("event=result_lost reason=\"{}\"", unwritten.message());
  }
}

void JobReport::interrupted(int signal, const std::string& cause) {
  if (!writes_) return;
  {
    const MutexLock lock(note_mutex_);
    if (note_) note_->forget();
    note_.reset();
  }
  auto written = std::make_shared<std::promise<void>>();
  std::future<void> end = written->get_future();
  // Detached: the process ends even if the disk hangs.
  std::thread([this, signal, cause, written] {
    try {
      write({"interrupted", 128 + signal, cause});
    } catch (const Error& unwritten) {
      log::warning("event=result_lost reason=\"{}\"", unwritten.message());
    }
    written->set_value();
  }).detach();
  end.wait_for(kLastWordsMax);
}

}  // namespace dtf::workerd
