#pragma once

// Named functions of a model, like the signatures of TensorFlow's saved models, for programs that
// run it in sessions of their own.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/graph/graph.h"
#include "common/model/model_spec.h"

namespace dtf::model {

struct SignatureTensor {
  enum class Role : uint8_t { kInput, kOutput, kVariable } role = Role::kInput;
  std::string name;  // in the signature: "features"
  graph::Output tensor;
};

// Value type.
struct Signature {
  graph::Graph graph;  // ops have a device only if the model's file names it
  std::vector<SignatureTensor> tensors;
};

//   predict   features -> outputs: see outputName(); logits, the last layer's
//   evaluate  features, labels -> loss, logits; accuracy, if the model has that metric
//   train     features, labels; random_key, if there is dropout (ModelGraph::random_key) -> loss;
//             gradient/W of the loss for each variable W; for a moving average A its next value,
//             next/A
// The categories of the data are inputs "categories/NAME"; where they serve as features, there is
// no input "features". All variables of the model are there by name; the caller trains them with
// ops of its own.
// Errors: kBadConfig for an unknown name, with the nearest; the errors of buildTrainingGraph().
Signature buildSignature(const ModelSpec& model, std::string_view name, int64_t batch_size);

}  // namespace dtf::model
