#include "common/base/job_summary.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "common/base/check.h"
#include "common/base/file.h"
#include "common/base/wall_time.h"

namespace dtf {

namespace {

using nlohmann::ordered_json;

// Rounded to a millisecond: the digits beyond are noise.
double rounded(double seconds) {
  return std::round(seconds * 1e3) / 1e3;
}

ordered_json taskJson(const TaskEnd& task) {
  return {{"name", task.name},
          {"exit_code", task.exit_code ? ordered_json(*task.exit_code) : ordered_json(nullptr)},
          {"restarts", task.restarts},
          {"cause", task.cause.empty() ? ordered_json(nullptr) : ordered_json(task.cause)}};
}

}  // namespace

ordered_json summaryJson(const JobEnd& end, const ordered_json& reached) {
  DTF_CHECK_MSG(!end.outcome.empty() && !end.tasks.empty() && reached.is_object(), end.job);
  ordered_json json = {{"schema", 1}, {"job", end.job}, {"outcome", end.outcome}};
  for (const char* key : {"global_step", "final_loss", "examples_per_second", "steps_per_second"})
    json[key] = nullptr;
  json["eval"] = ordered_json::object();
  for (const auto& [key, value] : reached.items())
    if (key != "schema" && key != "job" && key != "outcome") json[key] = value;
  json["exit_code"] = end.exit_code;
  json["wall_seconds"] = rounded(end.wall_seconds);
  json["ended"] = wallTimeText();
  json["tasks"] = ordered_json::array();
  for (const TaskEnd& task : end.tasks) json["tasks"].push_back(taskJson(task));
  return json;
}

std::filesystem::path summaryFile(const std::filesystem::path& run_dir) {
  return run_dir / "summary.json";
}

void removeSummary(const std::filesystem::path& run_dir) {
  std::error_code error;
  std::filesystem::remove(summaryFile(run_dir), error);
  if (error) failWrite(summaryFile(run_dir), error.value());
}

void writeSummary(const std::filesystem::path& run_dir, const ordered_json& summary) {
  atomicReplace(summaryFile(run_dir),
                summary.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace dtf
