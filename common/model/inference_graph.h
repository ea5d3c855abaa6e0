#pragma once

// What a trained model says of examples that nobody has labelled.

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
  ModelGraph model;       // as buildEvaluationGraph() makes it
  graph::Output outputs;  // float32 [batch, units], what outputName() says
};

// The last layer's output as the loss reads it: for sparse_categorical_crossentropy the softmax of
// each row, for binary_crossentropy the sigmoid of each unit, else the output itself.
// Errors: as buildEvaluationGraph().
InferenceGraph buildInferenceGraph(const ModelSpec& model, int64_t batch_size);

// "probabilities", or "outputs" for a loss whose model gives none.
std::string_view outputName(const ModelSpec& model);

// The class that the outputs of one example name: the largest one, of equal ones the first, as the
// accuracy counts; of one unit class 1 beyond the middle of what it is trained towards, else 0.
int64_t classOf(const ModelSpec& model, std::span<const float> outputs);

}  // namespace dtf::model
