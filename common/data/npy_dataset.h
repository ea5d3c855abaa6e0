#pragma once

// Reads a data set from NumPy's arrays; their first dimension counts the examples. Features become
// float32, pixels or indices; categories int32; labels classes; targets float32. A number that
// would change (an integer beyond 2^24 as a float, a label beyond 32 bits, one that is not finite)
// is bad data.

#include "common/cluster/data_spec.h"
#include "common/data/dataset.h"
#include "common/data/npy_reader.h"

namespace dtf::data {

// The parts of a data set by the arrays' headers: `count` examples. The headers of categories fit
// them.
struct NpyParts {
  int64_t count = 0;
  PartSpec features;
  PartSpec labels;
};

// Both are for format npy or npz.
// Errors: yaml::ErrorAt at the key that names the array: see readNpy() and ZipArchive; kBadData for
// arrays of different lengths, or elements that can't be converted.
NpyParts readNpyParts(const cluster::DatasetSpec& spec);
Dataset readNpyDataset(const cluster::DatasetSpec& spec);

// Reads examples from another archive, with the arrays of `like`, which is of format npz. It needs
// no labels; where it has that array, its numbers are the truths.
// Errors: see readNpyDataset().
UnlabelledExamples readNpzExamples(const std::filesystem::path& file,
                                   const cluster::DatasetSpec& like);

// Reads the features alone from a file, in the format of `like`; bytes are pixels if the model
// reads pixels.
// Errors: see readNpyDataset().
Part readNpyFeatures(const std::filesystem::path& file, const cluster::DatasetSpec& like);

}  // namespace dtf::data
