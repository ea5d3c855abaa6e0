#pragma once

// One launch at a time in a run directory, on each host: the launcher's own lock (run_folder.h) is
// of the host where it was started.

#include <filesystem>
#include <string>

#include "common/base/clock.h"
#include "common/base/file.h"

namespace dtf::launcher {

// Held by each agent of a launch, for a host may have several: a file in the run directory with the
// launch's name, which they share. Whoever finds that of another launch held is refused, so of two
// that start together either one goes on or none.
// Owns: a lock that the kernel gives back however this process ends. The file goes with its last
// holder, or with the next launch.
// Threads: thread-compatible.
// Blocks: in the constructor, for `patience` at most, for an agent to end whose launcher is gone.
class RunDirLock {
 public:
  // `launch`: letters and digits. The run directory exists.
  // Errors: kUnavailable while another launch runs there; kCannotWrite, kPermission.
  RunDirLock(const std::filesystem::path& run_dir, const std::string& launch, Duration patience);
  ~RunDirLock();
  RunDirLock(const RunDirLock&) = delete;
  RunDirLock& operator=(const RunDirLock&) = delete;

 private:
  void release();

  std::filesystem::path file_;
  Fd lock_;
};

}  // namespace dtf::launcher
