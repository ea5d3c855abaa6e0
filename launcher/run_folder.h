#pragma once

// The run directory: one launcher at a time, and a record, launch.json, of who runs in it, for
// status and stop.

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/file.h"

namespace dtf::launcher {

// What launch.json says. Value type.
struct LaunchRecord {
  std::string job;
  pid_t launcher = 0;
  std::vector<std::pair<std::string, pid_t>> tasks;  // "worker/1" and its process
};

// Owns: the lock on launch.json, which the kernel gives back however this process ends.
// Threads: thread-compatible.
// Blocks: on the disk.
class RunFolder {
 public:
  // Makes the folder and its logs/, takes the lock, and removes the summary of an earlier run, so
  // that a summary.json is always of the last launch.
  // Errors: kCannotWrite; kUnavailable naming the launcher that holds the folder.
  explicit RunFolder(std::filesystem::path folder);

  const std::filesystem::path& path() const { return folder_; }
  std::filesystem::path logs() const { return folder_ / "logs"; }
  std::filesystem::path summary() const { return folder_ / "summary.json"; }

  // Errors: kCannotWrite.
  void record(const LaunchRecord& record);

 private:
  std::filesystem::path folder_;
  Fd lock_;
};

// The record in `folder`, if a launcher holds it at this moment; nullopt: nothing runs there.
std::optional<LaunchRecord> runningLaunch(const std::filesystem::path& folder);

}  // namespace dtf::launcher
