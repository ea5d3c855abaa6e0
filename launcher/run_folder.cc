#include "launcher/run_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include "common/base/error.h"
#include "common/base/job_summary.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

RunFolder::RunFolder(fs::path folder) : folder_(folder), lock_(folder, {"", ::getpid(), {}}) {
  makeWritableFolder(logs());
  removeSummary(folder_);
}

void checkNothingRuns(const std::filesystem::path& folder) {
  if (const std::optional<LaunchRecord> other = runningLaunch(folder))
    throw Error(
        ErrorCode::kUnavailable,
        fmt::format("{} runs in {} already, pid {}: end it first (dtf-launch stop), or take "
                    "another --run-dir",
                    other->program, folder.string(), other->launcher));
}

}  // namespace dtf::launcher
