#pragma once

// A checkpoint of step 0 whose values come from elsewhere: what a job then goes on from, as from
// any other. So workers and ps need to know nothing of other programs' files, every check of a
// checkpoint holds, and the weights are read once, however often the job starts.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/file_system.h"
#include "common/cluster/spec.h"
#include "common/model_files/weight_match.h"

namespace dtf::train {

// What became of each variable and of each tensor of the file.
struct ImportReport {
  std::filesystem::path checkpoint;
  std::vector<std::string> used;    // "fc/weights [784, 10] from fc.weight, transposed"
  std::vector<std::string> drawn;   // variables that the file lacks: their initial values
  std::vector<std::string> unused;  // of the file
};

// Saves it in <job.run_dir>/checkpoints, with the slots that the optimizer starts with.
// Blocks: on the disk.
// Errors: kBadConfig when the job keeps no checkpoints, there is one already, or no tensor is a
// variable of the model, with the list, when the file says that its numbers mean something else
// than the job's data, and those of matchWeights(); kBadData for a value that is no number;
// kCannotWrite.
ImportReport saveImported(FileSystem& file_system, const Clock& clock, const cluster::JobSpec& job,
                          const model_files::FoundWeights& weights);

}  // namespace dtf::train
