#pragma once

// Checkpoints of a session's variables, in the format of jobs: TensorFlow's Saver. Slots, counters
// and the global step come along.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/base/file_system.h"
#include "common/base/ids.h"
#include "common/checkpoint/checkpoint_folder.h"
#include "common/engine/session.h"

namespace dtf::train {

// The key of Manifest::extra with the counters of a graph: a line "name=value" for each.
inline constexpr char kCountersKey[] = "counters";

struct GraphSaverOptions {
  std::string job = "graph";  // of the manifest: a job of a file with this name goes on from it
  uint32_t max_to_keep = 5;   // newest checkpoints in a folder; 0: all
  std::string global_step = "global_step";  // the name of the counter
};

// Owns: nothing on the disk. Borrows: `file_system`.
// Threads: one at a time.
// Blocks: on the tasks and on the disk.
// Errors: kBadConfig for a variable with a name that can't be saved, or that a checkpoint lacks;
// kTrainingFailed for a value that isn't finite; kBadData for a checkpoint that is missing or
// damaged; kCannotWrite; as engine::Session::run().
class GraphSaver {
 public:
  GraphSaver(FileSystem& file_system, GraphSaverOptions options);

  // Saves the values of all variables of the session's graph, of one step, as `folder`/step-N, and
  // returns that path. N is the global step, or `step` if the graph has none. Removes the oldest
  // checkpoints beyond max_to_keep, and leftovers of dead processes: a folder has one saver at a
  // time.
  std::filesystem::path save(engine::Session& session, const std::filesystem::path& folder,
                             std::optional<uint64_t> step = std::nullopt);

  // Sets all variables of the session's graph, from a checkpoint (folder/step-N), or from the
  // newest whole one in a folder. Returns its step. Ignores variables that the graph lacks.
  uint64_t restore(engine::Session& session, const std::filesystem::path& path);

  // Returns the path of the newest whole checkpoint in a folder; nullopt if there is none.
  std::optional<std::filesystem::path> latest(const std::filesystem::path& folder);

 private:
  checkpoint::Latest::Found find(const std::filesystem::path& path);
  void write(const std::filesystem::path& folder, checkpoint::Manifest manifest,
             const std::vector<checkpoint::TensorPart>& parts);

  FileSystem& file_system_;
  const GraphSaverOptions options_;
  const Incarnation incarnation_;
};

}  // namespace dtf::train
