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
  // Puts the summary of the run before back, where this launch has written none.
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
  // had done the job already, as both its summary and this launch (`was_done`) have it: the record
  // of this launch then says so.
  std::string writeSummary(Json& summary, bool is_refused = false, bool was_done = false);

  bool isKept() const { return is_kept_; }  // summary.json is of the run before

  const std::filesystem::path& path() const { return folder_; }
  std::filesystem::path logs() const { return folder_ / "logs"; }
  std::filesystem::path status() const { return folder_ / "status.json"; }

  bool held() const { return lock_.held(); }

  // Errors: kCannotWrite.
  void record(const LaunchRecord& record);

 private:
  std::filesystem::path folder_;
  RunLock lock_;
  LaunchRecord record_;
  bool serves_ = false;
  bool is_set_aside_ = false;  // the summary of the run before, until this launch writes its own
  bool is_kept_ = false;
  bool was_done_ = false;  // the job, says the summary of the run before
};

// Sets the summary of the run before aside while a launch may fail to start its tasks: puts it back
// when it is destroyed, unless they run.
class EarlierSummary {
 public:
  // Errors: kCannotWrite.
  explicit EarlierSummary(std::filesystem::path folder);
  ~EarlierSummary();
  EarlierSummary(const EarlierSummary&) = delete;
  EarlierSummary& operator=(const EarlierSummary&) = delete;

  // settleSummaries() decides at the end.
  void tasksRun() { tasks_run_ = true; }

 private:
  const std::filesystem::path folder_;
  bool tasks_run_ = false;
};

// Call it once the tasks have ended with `summary`, which is written. Puts the summary of the run
// before back, and returns true, where the tasks have nothing to report: the job failed before its
// first step, or that run had done it already. Else drops it.
bool settleSummaries(const std::filesystem::path& folder, const Json& summary);

// Root has files of its own in the folder of whoever it works in, who then can't use it any more,
// and obeys what somebody else's launch.json says.
// Errors: kPermission where this process is root, `folder` is another user's, and `as_root` false.
void checkOwner(const std::filesystem::path& folder, bool as_root);

// Errors: kUnavailable, saying who, where something runs in `folder`.
void checkNothingRuns(const std::filesystem::path& folder);

}  // namespace dtf::launcher
