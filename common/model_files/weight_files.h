#pragma once

// The variables of a model in one file, safetensors or NumPy's npz, with the metadata that a
// program needs to use them: metadataOf().

#include <string>

#include "common/model_files/trained_model.h"

namespace dtf::model_files {

// Returns the whole file's bytes. Each variable has its own name and shape; the metadata are in
// __metadata__.
// Errors: kCannotWrite when the header would be larger than the format allows.
std::string encodeSafetensors(const TrainedModel& trained);

// Returns the whole file's bytes: a zip archive without compression, of "<variable>.npy" for each
// variable and metadata.json, one object of texts.
// Errors: kCannotWrite when it would be larger than 4 GiB: safetensors has no such limit.
std::string encodeNpz(const TrainedModel& trained);

}  // namespace dtf::model_files
