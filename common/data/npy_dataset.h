#pragma once

// A data set from arrays of NumPy: whose first dimension counts the examples. Features become
// float32, pixels or indices; categories int32; labels classes; targets float32. A number that
// would become another one (an integer beyond 2^24 as a float, a label beyond 32 bits, one that is
// not finite) is bad data.

#include "common/cluster/data_spec.h"
#include "common/data/dataset.h"
#include "common/data/npy_reader.h"

namespace dtf::data {

// What the arrays' headers say: `count` examples with these parts. Those of categories have been
// found to fit.
struct NpyParts {
  int64_t count = 0;
  PartSpec features;
  PartSpec labels;
};

// Both are for format npy or npz.
// Errors: yaml::ErrorAt at the key that names the array: those of readNpy() and ZipArchive;
// kBadData for arrays of different lengths, or elements that can't be what they are to be.
NpyParts readNpyParts(const cluster::DatasetSpec& spec);
Dataset readNpyDataset(const cluster::DatasetSpec& spec);

// What a model reads of each example, without labels: of another archive with the arrays of `like`,
// which is one.
// Errors: as readNpyDataset().
UnlabelledExamples readNpzExamples(const std::filesystem::path& file,
                                   const cluster::DatasetSpec& like);

// The features alone, of a file as `like` has them; a job of another format reads bytes as pixels.
// Errors: as readNpyDataset().
Part readNpyFeatures(const std::filesystem::path& file, const cluster::DatasetSpec& like);

}  // namespace dtf::data
