#pragma once

// A trained model as an ONNX file (opset 17), for onnxruntime and whoever else reads it.

#include <string>

#include "common/model_files/trained_model.h"

namespace dtf::model_files {

// The whole file's bytes. Its inputs are "categories/NAME", where the data have categories, and
// "features", [batch, input shape...] of the model's type, as the job's data have it: the scaling
// is inside the graph. Its outputs are what outputName() says and "logits", the last layer's.
// Variables keep their names; the filters of convolutions are turned to ONNX's order. metadataOf()
// is in metadata_props.
// Errors: yaml::ErrorAt of kBadConfig at the layer that can't be expressed; kCannotWrite beyond 2
// GiB.
std::string encodeOnnx(const TrainedModel& trained);

}  // namespace dtf::model_files
