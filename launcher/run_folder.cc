#include "launcher/run_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "common/base/error.h"
#include "common/base/file.h"
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

std::string RunFolder::writeSummary(Json& summary, bool is_refused) {
  const fs::path file = summaryFile(folder_, serves_);
  is_kept_ = is_refused && (is_kept_ || ::rename(aside().c_str(), file.c_str()) == 0);
  if (is_kept_) return "";
  try {
    dtf::writeSummary(folder_, summary, serves_);
    ::unlink(aside().c_str());
    return "";
  } catch (const Error& error) {
    if (summary["exit_code"] == 0) summary["exit_code"] = exitCode(error.code());
    return "error: " + error.message();
  }
}

void RunFolder::begin(bool serves) {
  serves_ = serves;
  ::unlink(aside().c_str());  // of a launch that was killed
  const fs::path file = summaryFile(folder_, serves);
  if (::rename(file.c_str(), aside().c_str()) != 0 && errno != ENOENT) failWrite(file, errno);
}

fs::path RunFolder::aside() const {
  return folder_ / (serves_ ? ".serve.json.before" : ".summary.json.before");
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
