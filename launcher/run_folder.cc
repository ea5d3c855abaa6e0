#include "launcher/run_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/job_summary.h"
#include "launcher/json_fields.h"
#include "launcher/live_status.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

fs::path asideOf(const fs::path& folder, bool serves) {
  return folder / (serves ? ".serve.json.before" : ".summary.json.before");
}

}  // namespace

void setSummaryAside(const fs::path& folder, bool serves) {
  dropEarlierSummary(folder, serves);  // of a launch that was killed
  const fs::path file = summaryFile(folder, serves);
  if (::rename(file.c_str(), asideOf(folder, serves).c_str()) != 0 && errno != ENOENT)
    failWrite(file, errno);
}

bool putSummaryBack(const fs::path& folder, bool serves) {
  return ::rename(asideOf(folder, serves).c_str(), summaryFile(folder, serves).c_str()) == 0;
}

void dropEarlierSummary(const fs::path& folder, bool serves) {
  ::unlink(asideOf(folder, serves).c_str());
}

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

std::string RunFolder::writeSummary(Json& summary, bool is_refused, bool was_done) {
  const bool keeps_earlier = is_refused || (was_done && was_done_);
  is_kept_ = keeps_earlier && (is_kept_ || putSummaryBack(folder_, serves_));
  if (is_kept_) return "";
  try {
    dtf::writeSummary(folder_, summary, serves_);
    dropEarlierSummary(folder_, serves_);
    return "";
  } catch (const Error& error) {
    if (summary["exit_code"] == 0) summary["exit_code"] = exitCode(error.code());
    return "error: " + error.message();
  }
}

void RunFolder::begin(bool serves) {
  serves_ = serves;
  was_done_ = textOf(readSummary(folder_), "outcome") == "done";
  setSummaryAside(folder_, serves);
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
