#pragma once

// A trained model to export: its variables, whole, and the facts that a person needs to use them.

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "common/model/model_spec.h"
#include "common/tensor/tensor.h"

namespace dtf::model_files {

// Value type; move-only.
struct NamedTensor {
  std::string name;  // "softmax/weights"
  Tensor value;      // float32
};

// A view. Borrows all.
struct TrainedModel {
  std::string job;
  uint64_t step = 0;
  bool moving_averages = false;  // the variables are moving averages
  const model::ModelSpec& model;
  std::span<const NamedTensor> variables;  // in the order of the model
  std::string classes = {};                // names from class 0, a JSON array; empty: not known
  std::string signature = {};              // data::encodeSignature(); empty: not known
};

inline constexpr char kSignatureEntry[] = "data_signature";
// In an ONNX file: the tensors that are no variables, a line each. An import leaves them out.
inline constexpr char kConstantsEntry[] = "constants";

// Returns the entries for __metadata__ of safetensors and ONNX, and metadata.json of npz:
//   job, step, moving_averages, dtf_version
//   model     as model::modelText()
//   input     "features: uint8 [batch, 28, 28, 1]"
//   scaling   the model's first operation on the input: "features / 255"
//   output    "probabilities: float32 [batch, 10], the softmax of the last layer"
//   classes   ["cat", "dog"], from class 0, if their names are known: a JSON array
//   data_signature  the columns of the input and of the labels, and how fields become numbers, if
//             known: JSON, see data/data_signature.h
//   layouts   the dimensions of filters and matrices
std::map<std::string, std::string> metadataOf(const TrainedModel& trained);

// Describes the scaling: "features / 255: pixels from 0 to 255 become 0 to 1". `prepares`: the job
// prepares the columns of a table.
std::string scalingText(const model::ModelSpec& model, bool prepares = false);

}  // namespace dtf::model_files
