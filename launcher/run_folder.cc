#include "launcher/run_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/error.h"
#include "common/base/job_summary.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

RunFolder::RunFolder(fs::path folder) : folder_(folder), lock_(folder, {"", ::getpid(), {}}) {
  makeWritableFolder(logs());
  takeSummaryRoom(folder_);
}

RunFolder::~RunFolder() {
  releaseSummaryRoom(folder_);
}

bool RunFolder::hasSummary() const {
  std::error_code unknown;
  return fs::exists(summaryFile(folder_), unknown);
}

std::string RunFolder::writeSummary(Json& summary) const {
  try {
    dtf::writeSummary(folder_, summary, serves_);
    return "";
  } catch (const Error& error) {
    if (summary["exit_code"] == 0) summary["exit_code"] = exitCode(error.code());
    return "error: " + error.message();
  }
}

void RunFolder::begin(bool serves) {
  serves_ = serves;
  removeSummary(folder_, serves);
}

void checkOwner(const fs::path& folder, bool as_root) {
  struct stat owner {};
  if (as_root || ::geteuid() != 0 || ::stat(folder.c_str(), &owner) != 0 || owner.st_uid == 0)
    return;
  throw Error(
      ErrorCode::kPermission,
      fmt::format("the run directory {} belongs to user {}, and this is root: do it as that "
                  "user, name another directory (--run-dir DIR), or add --as-root",
                  folder.string(), owner.st_uid));
}

void checkNothingRuns(const std::filesystem::path& folder) {
  if (const std::optional<LaunchRecord> other = runningLaunch(folder))
    throw Error(
        ErrorCode::kUnavailable,
        fmt::format("{} runs in {} already, pid {}{}: end it first (dtf-launch stop), or take "
                    "another --run-dir",
                    other->program, folder.string(), other->launcher, onHostText(*other)));
}

}  // namespace dtf::launcher
