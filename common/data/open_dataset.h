#pragma once

// From what a job's file says of its data to the data.

#include <cstdint>
#include <filesystem>
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

// That both tables, where both are tables, have the same columns in the same order.
// Errors: those of readCsvHeader(); kBadData at the file of `eval` that has others.
void checkSameColumns(const cluster::DatasetSpec& train, const cluster::DatasetSpec& eval);

// Examples without labels, to be predicted: an array of NumPy, a table where the job reads tables
// (`like` is its training data), else an IDX file. With a header a table's columns are found by their
// names in the training data's; others, as the label's, are left out. `width` is that of the model's input.
// Errors: those of the reader.
Part readFeatures(const std::filesystem::path& file, const cluster::DatasetSpec& like,
                  int64_t width);

}  // namespace dtf::data
