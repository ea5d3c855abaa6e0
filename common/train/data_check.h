#pragma once

// What only shows when the files of a job are read to their ends: labels beyond the units, numbers
// beyond a vocabulary, records that can't be read, too few examples for a batch. The workers of the
// job find the same when they start; `dtf-launch check` finds it before.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/cluster/spec.h"
#include "common/yaml/report.h"

namespace dtf::train {

// Value type.
struct DataCounts {
  std::optional<int64_t> train;  // examples; nullopt: they are not on this host
  std::optional<int64_t> eval;   // nullopt: likewise, or the job has none
};

// Reads all data of `job`, which checkJob() has found no mistake in, as its workers will, and puts
// what is wrong with them into `report`. Nothing is drawn, and of a folder the images are counted,
// but not decoded. `on_reading` is told of what takes a while, before it does.
// Blocks: on the disk, as data::openDataset().
DataCounts checkContents(const cluster::JobSpec& job, yaml::Report& report,
                         const std::function<void(const std::string& what)>& on_reading);

}  // namespace dtf::train
