#pragma once

// The lock of a run directory. A directory belongs to one job at a time: to its dtf-launch, or,
// started by hand, to its chief. They lock the file launch.json, which also names the owner.

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/process_identity.h"

namespace dtf {

// The content of launch.json. Value types.
struct RecordedTask {
  std::string name;  // "worker/1"
  pid_t pid = 0;
  std::string address{};  // where it listens, "localhost:2222"; empty in an old record
  int64_t start_ticks =
      0;  // start of the process (process_identity.h), filled in by RunLock; 0 if not known
};
struct LaunchRecord {
  std::string job;
  pid_t launcher = 0;  // the process that holds the lock; SIGTERM to it ends the job
  std::vector<RecordedTask> tasks;
  std::string program = "dtf-launch";  // the program of `launcher`
  int attempt = 0;  // the attempt of the first processes, as in their logs' names; 0 if not known
  // The identity of `launcher`, filled in by RunLock. Records of dtf 0.1.0 have none.
  ProcessIdentity identity{};
  // tasks that serve, without a job; their end is in another file (job_summary.h)
  bool serves = false;
  // the launch had nothing to do: the summary is that of the run before
  bool already_done = false;
  // the time of day when the lock was taken (wall_time.h), filled in by RunLock; empty in an old
  // record
  std::string started{};
};

// Returns " on the host NAME" for a record of another host; empty for this host or an unknown one.
std::string onHostText(const LaunchRecord& record);

// Owns: the lock on launch.json, which the kernel releases however this process ends.
// Threads: thread-compatible.
// Blocks: on the disk.
class RunLock {
 public:
  // Makes the folder, takes the lock, records `holder`, and removes the status.json of a run that
  // was killed there.
  // Errors: kCannotWrite; kPermission if this user may not write there; kUnavailable with the
  // process that holds the folder.
  RunLock(std::filesystem::path folder, const LaunchRecord& holder);

  // Returns false once launch.json or its folder was removed or replaced. The lock is then on an
  // unreachable file, and another job may start there.
  bool held() const;

  // Errors: kCannotWrite.
  void record(const LaunchRecord& record);

 private:
  std::filesystem::path folder_;
  const std::string started_;
  Fd lock_;
};

// Returns the message for a job in `folder` after its lock was lost: held() is false.
std::string lostFolderText(const std::filesystem::path& folder);

// Returns the last record in launch.json of `folder`; empty if there is none.
LaunchRecord lastLaunch(const std::filesystem::path& folder);

// Returns the record in `folder` if a process holds the lock now; nullopt if nothing runs there.
std::optional<LaunchRecord> runningLaunch(const std::filesystem::path& folder);

}  // namespace dtf
