#pragma once

// What a model computes, as text: a checkpoint keeps it, because variables alone don't tell a relu
// from a tanh.

#include <string>

#include "common/model/model_spec.h"

namespace dtf::model {

// A line for the input, for each layer and for the loss. Without what may change while a job is
// stopped and leaves the meaning of the weights: dropout, initialisers, metrics.
std::string modelText(const ModelSpec& model);

// "[28, 28, 1]" for pixels, "float32 [10]" for what is read as it is.
std::string featuresText(const ModelSpec& model);
// "[1 hash_bucket_size=1000]": how many, and what their numbers stand for.
std::string categoryText(const CategoryInput& input);
// Both: "float32 [10] user[1 hash_bucket_size=1000]".
std::string inputText(const ModelSpec& model);

// Layer::meaning() and Layer::text() of a layer, with the layer that it reads where that isn't the
// one before it, and with its own name where it was given one: others may read it by that. Layers
// that it holds are lines of their own.
std::string layerMeaning(const LayerSpec& layer);
std::string layerText(const LayerSpec& layer);

// The lines that only one of them has, for a person: "  the checkpoint has 'X'", "  this job has
// 'Y'". Empty when there are none. Old names and those of today are the same (former_names.h).
std::string modelTextDifference(const std::string& saved, const std::string& wanted);

}  // namespace dtf::model
