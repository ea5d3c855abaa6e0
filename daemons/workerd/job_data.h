#pragma once

// Opens the data of a worker's job, with a report: a large table takes longer than everything else
// at the start.

#include <functional>
#include <memory>
#include <string>

#include "common/base/json.h"
#include "common/cluster/options.h"
#include "common/cluster/spec.h"
#include "common/data/dataset.h"

namespace dtf::workerd {

// Value type.
struct JobData {
  std::shared_ptr<const data::Dataset> train;
  std::shared_ptr<const data::Dataset> eval;  // null: the job has none, or another worker evaluates
};

// Returns the records that the job leaves out, for summary.json; null: none.
//   {"train": {"records": 2, "of": 152, "reasons": ["t.csv:3:5: ...", ...]}}, likewise "eval"
Json leftOutJson(const JobData& data);

// Is called before files are read, with a text such as "its data: t.csv, 3.2 GiB", again about
// every second with the bytes that have been read, from another thread, as long as the reading
// makes progress (reading_watch.h), and afterwards with an empty text. Never twice at a time.
using OnReading = std::function<void(const std::string& what)>;

// Returns the task's data.train with all that a table's preparation learns, from the newest
// checkpoint or from the whole table; unchanged, and silently, if it learns nothing.
// Blocks, errors: as train::preparedTraining().
cluster::DatasetSpec preparedTable(const cluster::TaskOptions& task, const OnReading& on_reading);

// `train.data.train` is prepared. Large files are logged, too.
// Blocks: as data::openDataset().
// Errors: as data::openDataset() and data::readAsTrained().
JobData openJobData(const cluster::TrainSpec& train, bool evaluates, const OnReading& on_reading);

}  // namespace dtf::workerd
