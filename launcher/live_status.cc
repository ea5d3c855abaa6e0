#include "launcher/live_status.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "common/base/error.h"
#include "common/base/file.h"
#include "launcher/json_fields.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

using nlohmann::ordered_json;

constexpr uint64_t kStatusBytesMax = 65536;
constexpr uint64_t kSummaryBytesMax = uint64_t{4} << 20;  // it has a row for each task

// An empty object where there is none that can be read.
ordered_json readObject(const fs::path& file, uint64_t bytes_max) {
  try {
    ordered_json json = ordered_json::parse(readFile(file, bytes_max), nullptr, false);
    return json.is_object() ? json : ordered_json::object();
  } catch (const Error&) {
    return ordered_json::object();
  }
}

}  // namespace

ordered_json statusJson(const LiveStatus& status) {
  const ProgressNotice none;
  const ProgressNotice& progress = status.progress ? *status.progress : none;
  ordered_json json = {
      {"schema", 1},
      {"time", status.time},
      {"step", status.progress ? ordered_json(progress.step) : ordered_json(nullptr)},
      {"steps", progress.steps > 0 ? ordered_json(progress.steps) : ordered_json(nullptr)},
      {"loss", orNull(progress.loss)},
      {"examples_per_second", orNull(progress.examples_per_second)},
      {"steps_per_second", orNull(status.steps_per_second)},
      {"seconds_left", orNull(status.seconds_left)},
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
  const std::string text =
      statusJson(status).dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  if (writeAll(fd.get(), text) > 0 || ::rename(fresh.c_str(), file.c_str()) != 0)
    ::unlink(fresh.c_str());
}

ordered_json readStatus(const fs::path& folder) {
  return readObject(folder / "status.json", kStatusBytesMax);
}

ordered_json readSummary(const fs::path& folder) {
  return readObject(folder / "summary.json", kSummaryBytesMax);
}

}  // namespace dtf::launcher
