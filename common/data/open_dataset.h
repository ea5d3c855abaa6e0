#pragma once

// From what a job's file says of its data to the data.

#include <cstdint>
#include <memory>

#include "common/cluster/spec.h"
#include "common/data/dataset.h"

namespace dtf::data {

// Reads or draws what `spec` asks for. `seed` and `eval` choose which examples are drawn; files don't
// depend on them.
// Blocks: on the disk, or for about 20 us an image drawn, shared by up to 4 threads.
// Errors: those of the reader, at the key that names the file; kBadConfig for a count of examples to
// draw that is out of range.
std::shared_ptr<const Dataset> openDataset(const cluster::DatasetSpec& spec, uint64_t seed,
                                           bool eval);

}  // namespace dtf::data
