#include "common/base/job_summary.h"

#include <fcntl.h>
#include <unistd.h>

#include <cmath>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/wall_time.h"

namespace dtf {

namespace {

// Rounded to a millisecond: the digits beyond are noise.
double rounded(double seconds) {
  return std::round(seconds * 1e3) / 1e3;
}

// Enough for 1024 tasks that failed.
constexpr off_t kRoomBytes = 256 * 1024;

std::filesystem::path roomOf(const std::filesystem::path& run_dir) {
  return run_dir / ".summary.room";
}

// Writes into blocks that are already allocated. Returns false if there are none or too few.
bool writeInRoom(const std::filesystem::path& run_dir, const std::filesystem::path& file,
                 std::string_view text) {
  const std::filesystem::path room = roomOf(run_dir);
  const Fd fd(::open(room.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
  return fd.valid() && writeAll(fd.get(), text) == 0 &&
         ::ftruncate(fd.get(), static_cast<off_t>(text.size())) == 0 && ::fsync(fd.get()) == 0 &&
         ::rename(room.c_str(), file.c_str()) == 0;
}

Json taskJson(const TaskEnd& task) {
  return {{"name", task.name},
          {"exit_code", task.exit_code ? Json(*task.exit_code) : Json(nullptr)},
          {"restarts", task.restarts},
          {"cause", task.cause.empty() ? Json(nullptr) : Json(task.cause)}};
}

}  // namespace

Json summaryJson(const JobEnd& end, const Json& reached) {
  DTF_CHECK_MSG(!end.outcome.empty() && !end.tasks.empty() && reached.isObject(), end.job);
  Json json = {{"schema", 1}, {"job", end.job}, {"outcome", end.outcome}};
  for (const char* key : {"global_step", "final_loss", "examples_per_second", "steps_per_second"})
    json[key] = nullptr;
  json["eval"] = Json::object();
  for (const auto& [key, value] : reached.members())
    if (key != "schema" && key != "job" && key != "outcome") json[key] = value;
  json["exit_code"] = end.exit_code;
  json["wall_seconds"] = rounded(end.wall_seconds);
  json["ended"] = wallTimeText();
  json["tasks"] = Json::array();
  for (const TaskEnd& task : end.tasks) json["tasks"].push_back(taskJson(task));
  return json;
}

std::filesystem::path summaryFile(const std::filesystem::path& run_dir, bool serves) {
  return run_dir / (serves ? "serve.json" : "summary.json");
}

void removeSummary(const std::filesystem::path& run_dir, bool serves) {
  const std::filesystem::path file = summaryFile(run_dir, serves);
  std::error_code error;
  std::filesystem::remove(file, error);
  if (error) failWrite(file, error.value());
}

void takeSummaryRoom(const std::filesystem::path& run_dir) {
  const std::filesystem::path room = roomOf(run_dir);
  ::unlink(room.c_str());
  const Fd fd(::open(room.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (fd.valid() && ::posix_fallocate(fd.get(), 0, kRoomBytes) != 0) ::unlink(room.c_str());
}

void writeSummary(const std::filesystem::path& run_dir, const Json& summary, bool serves) {
  const std::filesystem::path file = summaryFile(run_dir, serves);
  const std::string text = summary.dump(2) + "\n";
  try {
    atomicReplace(file, text);
  } catch (const Error&) {
    if (!writeInRoom(run_dir, file, text)) throw;
  }
}

void releaseSummaryRoom(const std::filesystem::path& run_dir) {
  ::unlink(roomOf(run_dir).c_str());
}

}  // namespace dtf
