#pragma once

// The preparation of a job's training table, once for the whole job: numbers and words in a
// checkpoint are used again, not learned again.

#include <cstdint>
#include <optional>

#include "common/base/file_system.h"
#include "common/checkpoint/manifest.h"
#include "common/cluster/spec.h"

namespace dtf::train {

// Returns `data` with the numbers and words of the checkpoint, if its settings are the
// checkpoint's; else unchanged. Errors: kBadData for a signature that can't be read.
cluster::DatasetSpec withSavedPreparation(const checkpoint::Manifest& saved,
                                          const cluster::DatasetSpec& data);

// A training table with all that its preparation learns. Value type.
struct PreparedTable {
  cluster::DatasetSpec data;
  // The step of the checkpoint with these numbers and words; nullopt: they are learned from the
  // data, or the table learns none.
  std::optional<uint64_t> saved_step;
};

// Returns job.train.data.train with all that its preparation learns: of the newest checkpoint in
// the run's folder whose manifest can be read, unless the job starts `fresh` or the file describes
// another preparation; else of the data (data/learn_table.h).
// Blocks: on the disk: reads manifests, or the data; never a checkpoint's values.
// Errors: as withSavedPreparation() and data::learnTable(); kPermission when this user may not read
// the newest checkpoint's manifest.
PreparedTable preparedTraining(FileSystem& file_system, const cluster::JobSpec& job, bool fresh);

}  // namespace dtf::train
