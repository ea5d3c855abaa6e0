#pragma once

// The run directory as the launcher that holds it sees it.

#include <filesystem>

#include "common/base/run_lock.h"

namespace dtf::launcher {

// Owns: the lock on the folder.
// Threads: thread-compatible.
// Blocks: on the disk.
class RunFolder {
 public:
  // Makes the folder and its logs/, takes the lock, and removes the summary of an earlier run, so
  // that a summary.json is always of the last launch.
  // Errors: those of RunLock; kCannotWrite.
  explicit RunFolder(std::filesystem::path folder);

  const std::filesystem::path& path() const { return folder_; }
  std::filesystem::path logs() const { return folder_ / "logs"; }
  std::filesystem::path status() const { return folder_ / "status.json"; }

  bool held() const { return lock_.held(); }

  // Errors: kCannotWrite.
  void record(const LaunchRecord& record) { lock_.record(record); }

 private:
  std::filesystem::path folder_;
  RunLock lock_;
};

// Errors: kUnavailable, saying who, where something runs in `folder`.
void checkNothingRuns(const std::filesystem::path& folder);

}  // namespace dtf::launcher
