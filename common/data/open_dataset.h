#pragma once

// From what a job's file says of its data to the data.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "common/cluster/spec.h"
#include "common/data/data_signature.h"
#include "common/data/dataset.h"

namespace dtf::data {

// Reads or draws what `spec` asks for. `seed` and `eval` choose which examples are drawn; files
// don't depend on them.
// Blocks: on the disk, or for about 20 us an image drawn, shared by up to 4 threads.
// Errors: those of the reader, at the key that names the file; kBadData for a class that has a name
// and, to train on, no example; kBadConfig for a count of examples to draw that is out of range.
std::shared_ptr<const Dataset> openDataset(const cluster::DatasetSpec& spec, uint64_t seed,
                                           bool eval);

// Examples without labels, to be predicted: an array of NumPy, an archive with the arrays of the
// job's, an image or a folder of them, a table where the job reads tables, else an IDX file. They
// are read by the signature `model`, or, without one (a checkpoint of dtf 0.1.0), as `like`, the
// training data. With a header a table's columns are found by their
// names; others, as the label's, are left out. `input_shape` is that of the model, which images are
// brought to.
// Errors: those of the reader; kBadConfig for images that the model can't read, and for a file of
// the job that asks for another preparation than the model's.
UnlabelledExamples readFeatures(const std::filesystem::path& file, const cluster::DatasetSpec& like,
                                const std::vector<int64_t>& input_shape,
                                const std::optional<DataSignature>& model = std::nullopt);

}  // namespace dtf::data
