#pragma once

// The facts about a job's data that are known before they are read.

#include <cstdint>
#include <optional>
#include <string>

#include "common/cluster/data_spec.h"
#include "common/data/part.h"
#include "common/yaml/mark.h"

namespace dtf::train {

// Facts from the headers of a data set. Value type.
struct SeenData {
  std::optional<int64_t> count;   // of the examples
  std::optional<uint64_t> bytes;  // of the examples, if their number is unknown
  data::PartSpec features;
  data::PartSpec labels{data::kLabels, DType::kUInt8, Shape()};
  std::string name;  // of the features, for messages
  yaml::Mark mark;
  std::string columns = {};  // feature columns of a table: "a, b, c"
};

SeenData seenPixels(int64_t count, Shape shape, std::string name, const yaml::Mark& mark);

// Counts the lines of libsvm files; some may be bad records. There is a file (DTF_CHECK).
// Blocks: on the disk.
// Errors: kBadData for a file that can't be read.
SeenData seenLibsvm(const cluster::DatasetSpec& dataset);

}  // namespace dtf::train
