#pragma once

// What is exported: a model and its variables, whole, with what a person must know to use them.

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
  bool moving_averages = false;  // the variables are these
  const model::ModelSpec& model;
  std::span<const NamedTensor> variables;  // in the order of the model
  std::string classes = {};                // names from class 0, a JSON array; none: not known
  std::string signature = {};              // data::encodeSignature(); none: not known
};

inline constexpr char kSignatureEntry[] = "data_signature";

// For __metadata__ of safetensors and ONNX, metadata.json of npz:
//   job, step, moving_averages, dtf_version
//   model     as model::modelText()
//   input     "features: uint8 [batch, 28, 28, 1]"
//   scaling   what is done to the input first: "features / 255"
//   output    "probabilities: float32 [batch, 10], the softmax of the last layer"
//   classes   ["cat", "dog"], from class 0, where their names are known: a JSON array
//   data_signature  the columns of the input and of what is learnt, and how fields become numbers,
//             where that is known: JSON, see data/data_signature.h
//   layouts   how filters and matrices lie
std::map<std::string, std::string> metadataOf(const TrainedModel& trained);

// What the model does to its input first, for a person: "each pixel is divided by 255 ...".
std::string scalingText(const model::ModelSpec& model);

}  // namespace dtf::model_files
