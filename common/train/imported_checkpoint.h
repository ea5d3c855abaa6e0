#pragma once

// A checkpoint of step 0 with imported weights, from which the job resumes as from any other. So
// workers and ps need not know the files of other programs, every check of a checkpoint applies,
// and the weights are read once, however often the job starts.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/file_system.h"
#include "common/cluster/spec.h"
#include "common/model_files/weight_match.h"

namespace dtf::train {

// The result of an import, by variable and by tensor of the file.
struct ImportReport {
  std::filesystem::path checkpoint;
  std::vector<std::string> used;    // "fc/weights [784, 10] from fc.weight, transposed"
  std::vector<std::string> drawn;   // variables that the file lacks: they get initial values
  std::vector<std::string> unused;  // tensors of the file
};

// Saves the weights in <job.run_dir>/checkpoints, with the optimizer's initial slots.
// Blocks: on the disk.
// Errors: kBadConfig if the job keeps no checkpoints or already has one; kBadConfig, with the list,
// if no tensor is a variable of the model; kBadConfig if the file's numbers have another meaning
// than the job's data; as model_files::matchWeights(). kBadData if a value is not finite.
// kCannotWrite.
ImportReport saveImported(FileSystem& file_system, const Clock& clock, const cluster::JobSpec& job,
                          const model_files::FoundWeights& weights);

}  // namespace dtf::train
