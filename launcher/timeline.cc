#include "launcher/timeline.h"

#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/json.h"
#include "common/base/trace.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kTimelineBytesMax = uint64_t{16} << 20;  // of one task; spans are bounded

fs::path fileOf(const fs::path& run_dir, TaskId task) {
  return run_dir / "timeline" / trace::fileName(task);
}

fs::path mergedFile(const fs::path& run_dir) {
  return run_dir / "timeline.json";
}

}  // namespace

void removeTimelines(const fs::path& run_dir, const std::vector<TaskId>& tasks) {
  std::error_code ignored;
  fs::remove(mergedFile(run_dir), ignored);
  for (const TaskId task : tasks) fs::remove(fileOf(run_dir, task), ignored);
}

size_t mergeTimelines(const fs::path& run_dir, const std::vector<TaskId>& tasks) {
  Json merged = {{"traceEvents", Json::array()}, {"otherData", {{"tasks", Json::array()}}}};
  size_t count = 0;
  for (const TaskId task : tasks) {
    const fs::path file = fileOf(run_dir, task);
    std::error_code ignored;
    if (!fs::exists(file, ignored)) continue;
    auto part = Json::parseOrNull(readFile(file, kTimelineBytesMax));
    if (!part.isObject() || !part.contains("traceEvents") || !part["traceEvents"].isArray() ||
        !part.contains("otherData"))
      throw Error(ErrorCode::kBadData, file.string() + " is not a timeline of a task");
    for (auto& event : part["traceEvents"]) merged["traceEvents"].push_back(std::move(event));
    merged["otherData"]["tasks"].push_back(std::move(part["otherData"]));
    ++count;
  }
  if (count > 0) atomicReplace(mergedFile(run_dir), merged.dump() + "\n");
  return count;
}

}  // namespace dtf::launcher
