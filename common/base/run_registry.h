#pragma once

// The run directories of a user, for the verbs of dtf-launch that work from any folder although
// "runs/<job>" is relative to the folder of the launch. There are two registries: one for as long
// as the user is logged in, by which `status`, `logs`, `attach` and `stop` find the run of a file,
// and the history, which `runs` lists. The holder of a run directory's lock (run_lock.h) adds an
// entry to both: dtf-launch, or the chief of a job by hand.

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dtf {

// Returns `path` as entries hold it: absolute and without links, even if it does not exist yet.
std::filesystem::path registeredPath(const std::filesystem::path& path);

// One launch of a file. Value type; paths are absolute.
struct KnownRun {
  std::filesystem::path cluster_file;
  std::filesystem::path run_dir;
  std::string job;
  std::string host{};  // where it was launched; set by the registry
};

// A folder with a small file for each run directory and cluster file of this user on this host. An
// entry is no lock and no proof that anything runs (launch.json is). An entry of this host is
// dropped once its run directory is gone, or once another file runs there and its own is gone. A
// host that shares the folder may see directories that this host does not. Beyond kEntriesMax the
// oldest entries are dropped.
// Threads: thread-compatible.
// Blocks: on the disk.
class RunRegistry {
 public:
  static constexpr size_t kEntriesMax = 1000;

  // Returns $XDG_RUNTIME_DIR/dtf, or /tmp/dtf-<uid> without that variable.
  static std::filesystem::path defaultFolder();
  // Returns $XDG_STATE_HOME/dtf/runs, by default ~/.local/state/dtf/runs. Nullopt without a home of
  // this user: root with the HOME of another user would leave files there that the user can't
  // replace.
  static std::optional<std::filesystem::path> historyFolder();

  explicit RunRegistry(std::filesystem::path folder = defaultFolder());

  // Makes the folder if it is missing.
  // Errors: kCannotWrite; kPermission if the folder belongs to another user.
  void remember(const KnownRun& run);

  // Returns all runs, newest first.
  std::vector<KnownRun> all() const;

  // Returns the runs of this file and job, newest first.
  std::vector<KnownRun> runsOf(const std::filesystem::path& cluster_file,
                               const std::string& job) const;

  // Returns the newest run in this directory, of whatever file; nullopt if there is none.
  std::optional<KnownRun> lastIn(const std::filesystem::path& run_dir) const;

 private:
  std::filesystem::path folder_;
};

// Adds the run to both registries. `host` of `run` is not used.
// Returns the warning to show, or an empty text: a failure costs only that the run is not found.
std::string registerRun(const KnownRun& run);

}  // namespace dtf
