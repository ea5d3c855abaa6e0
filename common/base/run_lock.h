#pragma once

// A run directory belongs to one job at a time: to the dtf-launch that runs it, or, started by
// hand, to its chief. Its file launch.json is what they lock, and says who runs there.

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/process_identity.h"

namespace dtf {

// What launch.json says. Value types.
struct RecordedTask {
  std::string name;  // "worker/1"
  pid_t pid = 0;
  std::string address{};  // where it listens, "localhost:2222"; empty in a record without it
  int64_t start_ticks =
      0;  // of the process (process_identity.h); RunLock looks it up. 0: not known
};
struct LaunchRecord {
  std::string job;
  pid_t launcher = 0;  // the process that holds the lock: a SIGTERM to it ends the job
  std::vector<RecordedTask> tasks;
  std::string program = "dtf-launch";  // of `launcher`
  int attempt = 0;  // of the first processes of its tasks: their logs' number; 0: not known
  // The identity of `launcher`. RunLock looks it up; records of dtf 0.1.0 have none.
  ProcessIdentity identity{};
  bool serves = false;  // tasks without a job: their end is another file's (job_summary.h)
};

// " on the host NAME" of a record of another host; empty: it is of this one, or says none.
std::string onHostText(const LaunchRecord& record);

// Owns: the lock on launch.json, which the kernel gives back however this process ends.
// Threads: thread-compatible.
// Blocks: on the disk.
class RunLock {
 public:
  // Makes the folder, takes the lock, records `holder`, and removes the status.json of a run that
  // was killed there.
  // Errors: kCannotWrite; kPermission where this user may not; kUnavailable naming the process that
  // holds the folder.
  RunLock(std::filesystem::path folder, const LaunchRecord& holder);

  // False once launch.json, or the folder around it, was removed or replaced: the lock is on a file
  // that nobody finds any more, so another job may start there.
  bool held() const;

  // Errors: kCannotWrite.
  void record(const LaunchRecord& record);

 private:
  std::filesystem::path folder_;
  Fd lock_;
};

// What to tell whoever runs a job in `folder` when it is not held() any more.
std::string lostFolderText(const std::filesystem::path& folder);

// What launch.json says of whoever holds `folder`, or held it last; empty where there is none.
LaunchRecord lastLaunch(const std::filesystem::path& folder);

// The record in `folder`, if somebody holds it at this moment; nullopt: nothing runs there.
std::optional<LaunchRecord> runningLaunch(const std::filesystem::path& folder);

}  // namespace dtf
