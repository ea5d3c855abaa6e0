#include "launcher/run_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/job_summary.h"
#include "launcher/json_fields.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kEarlierSummaryBytesMax = uint64_t{64} << 20;

fs::path asideOf(const fs::path& folder, bool serves) {
  return folder / (serves ? ".serve.json.before" : ".summary.json.before");
}

// Where there is none, the one that a killed launch has set aside stays.
void setSummaryAside(const fs::path& folder, bool serves) {
  const fs::path file = summaryFile(folder, serves);
  if (::rename(file.c_str(), asideOf(folder, serves).c_str()) != 0 && errno != ENOENT)
    failWrite(file, errno);
}

// False: there is none.
bool putSummaryBack(const fs::path& folder, bool serves) {
  return ::rename(asideOf(folder, serves).c_str(), summaryFile(folder, serves).c_str()) == 0;
}

void dropEarlierSummary(const fs::path& folder, bool serves) {
  ::unlink(asideOf(folder, serves).c_str());
}

// Whether the summary that was set aside is of a job that was done.
bool isAsideDone(const fs::path& folder, bool serves) {
  try {
    const Json summary =
        Json::parseOrNull(readFile(asideOf(folder, serves), kEarlierSummaryBytesMax));
    return textOf(summary, "outcome") == "done";
  } catch (const Error&) {
    return false;
  }
}

// A task that is killed while it writes leaves a temporary file.
void removeTemporariesOfTheDead(const fs::path& folder) {
  removeTemporaries(folder);
  removeTemporaries(folder / "checkpoints");
}

}  // namespace

EarlierSummary::EarlierSummary(fs::path folder) : folder_(std::move(folder)) {
  setSummaryAside(folder_, false);
}

EarlierSummary::~EarlierSummary() {
  if (!tasks_run_) putSummaryBack(folder_, false);
}

bool settleSummaries(const fs::path& folder, const Json& summary) {
  const std::string outcome = textOf(summary, "outcome");
  const Json* const already = summary.find("already_done");
  const bool is_refused = outcome == "failed" && !countOf(summary, "global_step");
  const bool was_done = outcome == "done" && already != nullptr && *already == true;
  if (is_refused || (was_done && isAsideDone(folder, false))) return putSummaryBack(folder, false);
  dropEarlierSummary(folder, false);
  return false;
}

RunFolder::RunFolder(fs::path folder)
    : folder_(folder), lock_(folder, {"", ::getpid(), {}}), record_{"", ::getpid(), {}} {
  removeTemporariesOfTheDead(folder_);
  makeWritableFolder(logs());
  takeSummaryRoom(folder_);
}

RunFolder::~RunFolder() {
  if (is_set_aside_) putSummaryBack(folder_, serves_);
  releaseSummaryRoom(folder_);
  removeTemporariesOfTheDead(folder_);
}

bool RunFolder::hasSummary() const {
  std::error_code unknown;
  return fs::exists(summaryFile(folder_), unknown);
}

std::string RunFolder::writeSummary(Json& summary, bool is_refused, bool was_done) {
  is_set_aside_ = false;
  const bool keeps_earlier = is_refused || (was_done && was_done_);
  is_kept_ = keeps_earlier && (is_kept_ || putSummaryBack(folder_, serves_));
  try {
    if (is_kept_ && !is_refused && !record_.already_done) {
      record_.already_done = true;
      lock_.record(record_);
    }
    if (is_kept_) return "";
    dtf::writeSummary(folder_, summary, serves_);
    dropEarlierSummary(folder_, serves_);
    return "";
  } catch (const Error& error) {
    if (summary["exit_code"] == 0) summary["exit_code"] = exitCode(error.code());
    return "error: " + error.message();
  }
}

void RunFolder::record(const LaunchRecord& record) {
  record_ = record;
  lock_.record(record_);
}

void RunFolder::begin(bool serves) {
  serves_ = serves;
  setSummaryAside(folder_, serves);
  is_set_aside_ = true;
  was_done_ = isAsideDone(folder_, serves);
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
