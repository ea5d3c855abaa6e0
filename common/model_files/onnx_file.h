#pragma once

// A trained model as an ONNX file (opset 17), for onnxruntime and other readers.

#include <string>

#include "common/model_files/trained_model.h"

namespace dtf::model_files {

// Returns the whole file's bytes. Its inputs are "categories/NAME", if the data have categories,
// and "features", [batch, input shape...] of the model's type, unscaled: the scaling is inside the
// graph. Its outputs are outputName() and "logits", the last layer's. Variables keep their names;
// the filters of convolutions are turned to ONNX's order. metadataOf() is in metadata_props.
// Errors: yaml::ErrorAt of kBadConfig at a layer that ONNX can't express; kCannotWrite beyond 2
// GiB.
std::string encodeOnnx(const TrainedModel& trained);

}  // namespace dtf::model_files
