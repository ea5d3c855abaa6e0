#pragma once

// A model as text, for checkpoints: variables alone don't tell a relu from a tanh.

#include <string>

#include "common/model/model_spec.h"

namespace dtf::model {

// Returns a line for the input, each layer and the loss. Leaves out settings that a later run may
// change because the weights keep their meaning: dropout, initializers, metrics.
std::string modelText(const ModelSpec& model);

// Returns "[28, 28, 1]" for pixels, "float32 [10]" for features that are read unchanged.
std::string featuresText(const ModelSpec& model);
// Returns "[1 hash_bucket_size=1000]": the count, and how the numbers are made.
std::string categoryText(const CategoryInput& input);
// Returns both: "float32 [10] user[1 hash_bucket_size=1000]".
std::string inputText(const ModelSpec& model);

// Return Layer::meaning() and Layer::text() of a layer, with its `from`, and with the name that the
// file gives it, which others may refer to. Layers within it are lines of their own.
std::string layerMeaning(const LayerSpec& layer);
std::string layerText(const LayerSpec& layer);

// Returns the lines that only one text has, "  the checkpoint has 'X'", "  this job has 'Y'"; empty
// if there are none. Old names and today's are the same (former_names.h).
std::string modelTextDifference(const std::string& saved, const std::string& wanted);

}  // namespace dtf::model
