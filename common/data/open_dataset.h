#pragma once

// Opens the data sets that a job's file describes.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/cluster/spec.h"
#include "common/data/data_signature.h"
#include "common/data/dataset.h"

namespace dtf::data {

// Reads or draws the data set `spec`; a table that learns its preparation, and hasn't yet, is read
// twice (learn_table.h). `seed` and `eval` only choose which examples are drawn.
// Blocks: on the disk, or for about 20 us an image drawn, shared by up to 4 threads.
// Errors: the reader's, at the key that names the file; kBadData for a named class without an
// example to train on; kBadConfig for a number of examples to draw that is out of range.
std::shared_ptr<const Dataset> openDataset(const cluster::DatasetSpec& spec, uint64_t seed,
                                           bool eval);

// Examples without labels, to be predicted: an array of NumPy, an archive with the arrays of the
// job's, an image or a folder of them, a table or a libsvm file where the job reads such, else an
// IDX file. They
// are read by the signature `model`, or, without one (a checkpoint of dtf 0.1.0), as `like`, the
// training data. With a header a table's columns are found by their
// names; others, as the label's, are left out. Images are resized to `input_shape`, the model's.
// `keep`: columns of a table that are copied, as namedColumns() takes them. Errors: as the reader;
// kBadConfig for images that the model can't read, for an array where the model prepares the
// columns of a table, and for a file of the job that asks for another preparation than the model's.
UnlabelledExamples readFeatures(const std::filesystem::path& file, const cluster::DatasetSpec& like,
                                const std::vector<int64_t>& input_shape,
                                const std::optional<DataSignature>& model = std::nullopt,
                                std::span<const std::string> keep = {});

}  // namespace dtf::data
