#pragma once

// Checkpoints of a session's variables, in the format of jobs: TensorFlow's Saver. Slots, counters
// and the global step come along.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/file_system.h"
#include "common/base/ids.h"
#include "common/checkpoint/checkpoint_folder.h"
#include "common/engine/session.h"

namespace dtf::train {

// The key of Manifest::extra with the counters of a graph: a line "name=value" for each.
inline constexpr char kCountersKey[] = "counters";
// Returns the counters of a graph's checkpoint; none of a job's.
// Errors: kBadData.
std::map<std::string, int64_t> countersIn(const checkpoint::Manifest& manifest);

struct GraphSaverOptions {
  std::string job = "graph";  // of the manifest: a job of a file with this name goes on from it
  uint32_t max_to_keep = 5;   // newest checkpoints in a folder; 0: all
  std::string global_step = "global_step";        // the name of the counter
  Duration pause_max = std::chrono::seconds(30);  // of synchronous replicas that take steps
  std::optional<Incarnation> incarnation{};  // of this process, in names of files; none: of now
  // A simulation has one thread, so it can't pause replicas beside its reads; and its own clock.
  bool pauses_replicas = true;
  const Clock* clock = nullptr;                       // null: the system's
  std::function<void(TimePoint until)> wait_until{};  // none: blocks the thread
};

// Owns: nothing on the disk. Borrows: `file_system`.
// Threads: one at a time.
// Blocks: on the tasks and on the disk.
// Errors: kBadConfig for a variable with a name that can't be saved, or that a checkpoint lacks,
// and for a negative global step; kTrainingFailed for a value that isn't finite; kBadData for a
// checkpoint that is missing or damaged; kCannotWrite; as engine::Session::run().
class GraphSaver {
 public:
  GraphSaver(FileSystem& file_system, GraphSaverOptions options);

  // Saves the values of all variables of the session's graph as `folder`/step-N, and returns that
  // path. N is the global step, or `step` if the graph has none. Each device reads its variables
  // one after another. With synchronous replicas the values are of one step: if clients take steps
  // meanwhile, they are paused until all variables are read, at most pause_max; kUnavailable if a
  // step stays half taken. Without, they are of one step only if no other step changes variables
  // meanwhile, of this client or of another. Removes the oldest checkpoints beyond max_to_keep, but
  // never this one, and leftovers of dead processes: a folder has one saver at a time. Logs a
  // warning if the folder has a newer checkpoint, which restore() of the folder takes.
  std::filesystem::path save(engine::Session& session, const std::filesystem::path& folder,
                             std::optional<uint64_t> step = std::nullopt);

  // Sets all variables of the session's graph, from a checkpoint (folder/step-N), or from the
  // newest whole one in a folder; logs a warning for each newer one that is damaged. Returns its
  // step. Ignores variables that the graph lacks. The versions of synchronous replicas that the
  // checkpoint lacks, as a job's does, become its global step. Sets one variable after another,
  // global steps last: no step may change them meanwhile. After a step with an error some variables
  // may have changed and others not, so a program restores before it goes on.
  uint64_t restore(engine::Session& session, const std::filesystem::path& path);

  // Returns the path of the newest whole checkpoint in a folder; nullopt if there is none. Logs as
  // restore().
  std::optional<std::filesystem::path> latest(const std::filesystem::path& folder);

  // Returns a checkpoint (folder/step-N), or the newest whole one in a folder. Logs as restore().
  checkpoint::Latest::Found find(const std::filesystem::path& path);

 private:
  void write(const std::filesystem::path& folder, checkpoint::Manifest manifest,
             const std::vector<checkpoint::TensorPart>& parts);
  std::vector<std::string> globalStepsLast(const graph::Graph& graph,
                                           std::vector<std::string> counters) const;

  FileSystem& file_system_;
  const GraphSaverOptions options_;
  const Incarnation incarnation_;
};

}  // namespace dtf::train
