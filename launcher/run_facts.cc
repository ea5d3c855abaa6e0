#include "launcher/run_facts.h"

#include <fmt/core.h>

#include "common/base/checksum.h"
#include "common/base/error.h"
#include "common/base/file_system.h"
#include "common/base/ids.h"
#include "common/base/job_summary.h"
#include "common/base/run_lock.h"
#include "common/base/run_registry.h"
#include "common/base/text.h"
#include "common/base/wall_time.h"
#include "common/checkpoint/checkpoint_folder.h"
#include "launcher/json_fields.h"
#include "launcher/live_status.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

using WallClock = std::chrono::system_clock;

constexpr size_t kIdDigits = 8;

std::vector<std::pair<std::string, double>> evaluationOf(const Json& eval) {
  std::vector<std::pair<std::string, double>> values;
  for (const char* name : {"loss", "accuracy"})
    if (const auto value = numberOf(eval, name)) values.emplace_back(name, *value);
  for (auto& metric : metricsOf(eval)) values.push_back(std::move(metric));
  return values;
}

std::vector<std::pair<std::string, double>> evaluationIn(const Json& object) {
  const Json* const eval = object.find("eval");
  return eval == nullptr ? std::vector<std::pair<std::string, double>>() : evaluationOf(*eval);
}

std::optional<uint64_t> newestCheckpoint(const fs::path& run_dir) {
  try {
    checkpoint::CheckpointFolder folder(realFileSystem(), run_dir / "checkpoints",
                                        Incarnation::ofNow());
    const std::vector<uint64_t> steps = folder.steps();
    return steps.empty() ? std::nullopt : std::optional(steps.back());
  } catch (const Error&) {
    return std::nullopt;
  }
}

void addLive(const LaunchRecord& launch, RunFacts& run) {
  run.state = launch.serves ? "serving" : "running";
  run.started = wallTimeOf(launch.started);
  if (run.started)
    run.seconds = std::chrono::duration<double>(WallClock::now() - *run.started).count();
  const Json live = readStatus(run.folder);
  run.step = countOf(live, "step");
  run.steps = countOf(live, "steps");
  run.loss = numberOf(live, "loss");
  run.eval = evaluationIn(live);
  run.steps_per_second = numberOf(live, "steps_per_second");
  run.examples_per_second = numberOf(live, "examples_per_second");
}

void addEnded(const LaunchRecord& launch, const Json& summary, RunFacts& run) {
  run.state = textOf(summary, "outcome");
  run.seconds = numberOf(summary, "wall_seconds");
  run.step = countOf(summary, "global_step");
  run.loss = numberOf(summary, "final_loss");
  run.eval = evaluationIn(summary);
  run.steps_per_second = numberOf(summary, "steps_per_second");
  run.examples_per_second = numberOf(summary, "examples_per_second");
  run.parameters_digest = textOf(summary, "parameters_digest");
  run.exit_code = countOf(summary, "exit_code");
  const auto ended = wallTimeOf(textOf(summary, "ended"));
  // The record may be of a later launch, which had nothing to do or was refused.
  if (ended && run.seconds)
    run.started = *ended - std::chrono::duration_cast<WallClock::duration>(
                               std::chrono::duration<double>(*run.seconds));
  else
    run.started = wallTimeOf(launch.started);
}

}  // namespace

std::string runId(const fs::path& folder) {
  return hexOf(checksumOf(registeredPath(folder).string())).substr(0, kIdDigits);
}

bool isRun(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / "launch.json", ignored) ||
         fs::is_regular_file(summaryFile(folder), ignored);
}

RunFacts readRun(const fs::path& folder) {
  RunFacts run;
  run.folder = registeredPath(folder);
  run.id = runId(folder);
  run.checkpoint = newestCheckpoint(run.folder);
  // A summary names its job for the folder of a launcher that was killed while it wrote its record.
  const std::optional<LaunchRecord> running = runningLaunch(run.folder);
  const LaunchRecord launch = running.value_or(lastLaunch(run.folder));
  const Json summary = running ? Json::object() : readSummary(run.folder);
  run.job = launch.job.empty() ? textOf(summary, "job") : launch.job;
  if (run.job.empty()) run.job = run.folder.filename().string();
  if (running) {
    addLive(launch, run);
  } else if (!textOf(summary, "outcome").empty()) {
    addEnded(launch, summary, run);
  } else {
    run.state = onHostText(launch).empty() ? "killed" : "unknown";
    run.started = wallTimeOf(launch.started);
  }
  return run;
}

Json runJson(const RunFacts& run) {
  const auto textOrNull = [](const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
  };
  Json eval = Json::object();
  for (const auto& [name, value] : run.eval) eval[name] = value;
  return {{"id", run.id},
          {"job", run.job},
          {"run_dir", run.folder.string()},
          {"cluster_file", textOrNull(run.cluster_file.string())},
          {"state", run.state},
          {"started", run.started ? Json(wallTimeText(*run.started)) : Json(nullptr)},
          {"wall_seconds", orNull(run.seconds)},
          {"global_step", orNull(run.step)},
          {"steps", orNull(run.steps)},
          {"final_loss", orNull(run.loss)},
          {"eval", eval},
          {"steps_per_second", orNull(run.steps_per_second)},
          {"examples_per_second", orNull(run.examples_per_second)},
          {"checkpoint_step", orNull(run.checkpoint)},
          {"parameters_digest", textOrNull(run.parameters_digest)},
          {"exit_code", orNull(run.exit_code)}};
}

std::string metricsText(const RunFacts& run) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : run.eval)
    if (name != "loss") parts.push_back(fmt::format("{} {:.4f}", name, value));
  return join(parts, ", ");
}

}  // namespace dtf::launcher
