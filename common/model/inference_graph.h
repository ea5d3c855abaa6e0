#pragma once

// The graph that computes a trained model's predictions.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "common/graph/graph.h"
#include "common/model/model_graph.h"
#include "common/model/model_spec.h"

namespace dtf::model {

// A graph that needs no labels. Value type.
struct InferenceGraph {
  ModelGraph model;       // of buildEvaluationGraph(), with the outputs
  graph::Output outputs;  // float32 [batch, units]; outputName() names them
};

// Builds the graph. The outputs are the softmax of each row for sparse_categorical_crossentropy,
// the sigmoid of each unit for binary_crossentropy, else the last layer's output itself.
// Errors: see buildEvaluationGraph().
InferenceGraph buildInferenceGraph(const ModelSpec& model, int64_t batch_size);

// Returns "probabilities" for the two cross-entropies, else "outputs".
std::string_view outputName(const ModelSpec& model);

// Returns the predicted class of one example: the largest output, the first of equal ones, as the
// accuracy counts; with one unit class 1 above 0.5 (hinge: above 0), else class 0.
int64_t classOf(const ModelSpec& model, std::span<const float> outputs);

}  // namespace dtf::model
