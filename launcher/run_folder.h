#pragma once

// The run directory as the launcher that holds it sees it.

#include <filesystem>

#include "common/base/json.h"
#include "common/base/run_lock.h"

namespace dtf::launcher {

// Owns: the lock on the folder.
// Threads: thread-compatible.
// Blocks: on the disk.
class RunFolder {
 public:
  // Makes the folder and its logs/, takes the lock, and room on the disk for the summary.
  // Errors: those of RunLock; kCannotWrite.
  explicit RunFolder(std::filesystem::path folder);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  // Sets the summary of the run before aside, so that one that is there is of this launch. A launch
  // that is refused before this leaves it.
  // Errors: kCannotWrite.
  void begin(bool serves);

  // Whether a run before this one, or this one, has left a summary.
  bool hasSummary() const;

  // Writes the summary of this launch. Where that fails, returns what to tell, and an `exit_code`
  // of 0 in the summary becomes that of the failure. The summary of the run before is put back,
  // where there was one, if the launch failed before its first step (`is_refused`), or if that run
  // had done the job already, as both its summary and this launch (`was_done`) have it.
  std::string writeSummary(Json& summary, bool is_refused = false, bool was_done = false);

  bool isKept() const { return is_kept_; }  // summary.json is of the run before

  const std::filesystem::path& path() const { return folder_; }
  std::filesystem::path logs() const { return folder_ / "logs"; }
  std::filesystem::path status() const { return folder_ / "status.json"; }

  bool held() const { return lock_.held(); }

  // Errors: kCannotWrite.
  void record(const LaunchRecord& record) { lock_.record(record); }

 private:
  std::filesystem::path folder_;
  RunLock lock_;
  bool serves_ = false;
  bool is_kept_ = false;
  bool was_done_ = false;  // the job, says the summary of the run before
};

// The summary of the run before, while this launch may be refused: sets it aside, where there is
// one; puts it back, and returns whether there was one; drops it.
// Errors: kCannotWrite, of setSummaryAside().
void setSummaryAside(const std::filesystem::path& folder, bool serves = false);
bool putSummaryBack(const std::filesystem::path& folder, bool serves = false);
void dropEarlierSummary(const std::filesystem::path& folder, bool serves = false);

// Root has files of its own in the folder of whoever it works in, who then can't use it any more,
// and obeys what somebody else's launch.json says.
// Errors: kPermission where this process is root, `folder` is another user's, and `as_root` false.
void checkOwner(const std::filesystem::path& folder, bool as_root);

// Errors: kUnavailable, saying who, where something runs in `folder`.
void checkNothingRuns(const std::filesystem::path& folder);

}  // namespace dtf::launcher
