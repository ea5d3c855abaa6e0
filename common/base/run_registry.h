#pragma once

// Where the runs of a cluster file are, for `status`, `logs`, `attach` and `stop`, which a person
// calls from any folder: "runs/<job>" is relative to the folder that the job was started from. Who
// holds the run directory's lock (run_lock.h) remembers it here: dtf-launch, or the chief of a job
// by hand.

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace dtf {

// `path` as an entry has it: absolute, without links, also of what is not there yet.
std::filesystem::path registeredPath(const std::filesystem::path& path);

// One launch of a file. Value type; paths are absolute.
struct KnownRun {
  std::filesystem::path cluster_file;
  std::filesystem::path run_dir;
  std::string job;
  std::string host{};  // where it was launched; the registry fills it in
};

// A folder with a small file for each run directory of this user on this host. It is no lock and no
// proof that anything runs (launch.json is): an entry of this host whose run directory is gone is
// dropped; another host, with which this one shares the folder, may see directories that this one
// doesn't. Threads: thread-compatible. Blocks: on the disk.
class RunRegistry {
 public:
  // $XDG_RUNTIME_DIR/dtf, or /tmp/dtf-<uid> where there is none.
  static std::filesystem::path defaultFolder();

  explicit RunRegistry(std::filesystem::path folder = defaultFolder());

  // Errors: kCannotWrite; kPermission when the folder belongs to somebody else.
  void remember(const KnownRun& run);

  // Those of this file and job, the newest first.
  std::vector<KnownRun> runsOf(const std::filesystem::path& cluster_file,
                               const std::string& job) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace dtf
