#include "launcher/live_status.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/job_summary.h"
#include "common/base/run_lock.h"
#include "launcher/json_fields.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kStatusBytesMax = 65536;
constexpr uint64_t kSummaryBytesMax = uint64_t{4} << 20;  // it has a row for each task

// An empty object where there is none that can be read.
Json readObject(const fs::path& file, uint64_t bytes_max) {
  try {
    Json json = Json::parseOrNull(readFile(file, bytes_max));
    return json.isObject() ? json : Json::object();
  } catch (const Error&) {
    return Json::object();
  }
}

}  // namespace

Json statusJson(const LiveStatus& status) {
  const ProgressNotice none;
  const ProgressNotice& progress = status.progress ? *status.progress : none;
  Json json = {{"schema", 1},
               {"time", status.time},
               {"step", status.progress ? Json(progress.step) : Json(nullptr)},
               {"steps", progress.steps > 0 ? Json(progress.steps) : Json(nullptr)},
               {"loss", orNull(progress.loss)},
               {"examples_per_second", orNull(progress.examples_per_second)},
               {"steps_per_second", orNull(status.steps_per_second)},
               {"seconds_left", orNull(status.seconds_left)},
               {"straggler", stragglerJson(progress.straggler)},
               {"eval", nullptr},
               {"checkpoint_step", orNull(status.checkpoint)},
               {"line", status.line}};
  if (status.evaluation)
    json["eval"] = {{"step", status.evaluation->step},
                    {"loss", orNull(status.evaluation->loss)},
                    {"accuracy", orNull(status.evaluation->accuracy)}};
  if (status.evaluation)
    for (const auto& [name, value] : status.evaluation->metrics) json["eval"][name] = value;
  return json;
}

void writeStatus(const fs::path& file, const LiveStatus& status) {
  const fs::path fresh = file.string() + ".tmp";
  ::unlink(fresh.c_str());  // of a launcher that was killed: O_EXCL refuses any link there
  const Fd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd.valid()) return;
  const std::string text = statusJson(status).dump() + "\n";
  if (writeAll(fd.get(), text) > 0 || ::rename(fresh.c_str(), file.c_str()) != 0)
    ::unlink(fresh.c_str());
}

Json readStatus(const fs::path& folder) {
  return readObject(folder / "status.json", kStatusBytesMax);
}

Json readSummary(const fs::path& folder) {
  return readObject(summaryFile(folder, lastLaunch(folder).serves), kSummaryBytesMax);
}

Json readOwnSummary(const fs::path& folder) {
  Json summary = readSummary(folder);
  const std::optional<uint64_t> attempt = countOf(summary, "attempt");
  const LaunchRecord launch = lastLaunch(folder);
  const bool is_older =
      attempt && launch.attempt > 0 && *attempt < static_cast<uint64_t>(launch.attempt);
  return is_older && !launch.already_done ? Json::object() : summary;
}

}  // namespace dtf::launcher
