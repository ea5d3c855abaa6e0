#pragma once

// What a model computes, by name, as TensorFlow's saved models have it: for programs that run it in
// sessions of their own.

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
  graph::Graph graph;  // nothing in it asks for a device but what the model's file says
  std::vector<SignatureTensor> tensors;
};

//   predict   features -> outputs: as outputName() says; logits, the last layer's
//   evaluate  features, labels -> loss, logits; accuracy, where the model asks for it
//   train     features, labels; random_key, where there is dropout (ModelGraph::random_key) ->
//             loss, and for each variable W gradient/W, that of the loss; for a moving average A
//             next/A in its place: the value that the step gives it
// Where the data have categories each is an input, too: "categories/NAME"; where they have nothing
// else there are no features. Each with all variables of the model, by their names. Who trains
// updates them by ops of his own.
// Errors: kBadConfig for a name that there isn't, with the nearest; those of buildTrainingGraph().
Signature buildSignature(const ModelSpec& model, std::string_view name, int64_t batch_size);

}  // namespace dtf::model
