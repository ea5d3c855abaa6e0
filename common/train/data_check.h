#pragma once

// Checks that need the whole content of a job's data files: labels beyond the units, numbers beyond
// a vocabulary, unreadable records, too few examples for a batch. The job's workers make the same
// checks when they start; `dtf-launch check` makes them before.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/base/log.h"
#include "common/cluster/spec.h"
#include "common/yaml/report.h"

namespace dtf::train {

// Value type.
struct DataCounts {
  std::optional<int64_t> train;  // examples; nullopt: not on this host
  std::optional<int64_t> eval;   // nullopt: likewise, or the job has none
  // The step of the checkpoint whose preparation of the table was used, as a resumed job uses it;
  // nullopt: the table learns none, or learns it from its data.
  std::optional<uint64_t> prepared_by{};
};

// Reads all data of `job`, in which checkJob() has found no mistake, as its workers will: a table
// by the preparation that the newest checkpoint has (saved_preparation.h). Adds mistakes of the
// data to `report`. Only counts drawn examples, and the images of a folder without
// a split. Calls `on_reading` with the name of a large data set before it is read.
// Logs the records that are left out, at the level `left_out`.
// Blocks: on the disk, as data::openDataset().
DataCounts checkContents(const cluster::JobSpec& job, yaml::Report& report,
                         const std::function<void(const std::string& what)>& on_reading,
                         log::Level left_out = log::Level::kWarning);

}  // namespace dtf::train
