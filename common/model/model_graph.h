#pragma once

// From a model as its file describes it to the graph that trains or evaluates it. Every worker
// builds the same graph from the same file, so their variables, and with them the placement, agree.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/graph/graph.h"
#include "common/model/model_spec.h"

namespace dtf::model {

// What the training adds to one variable.
struct ModelVariable {
  graph::Output value;
  // Of the loss; of a moving average in its place what the batch says. Training graphs only.
  std::optional<graph::Output> gradient;
  // The ApplyGradient, or, of a sparse variable, the ApplySparseGradient; training graphs only.
  std::optional<graph::NodeId> update;
  // Set: not trained, a moving average (ps::VariableInfo), which training steps don't read.
  std::optional<double> momentum;
  // Set: a sparse variable, whose `gradient` is that of what was looked up: one row for each of
  // these, which are one of the inputs, perhaps of another shape.
  std::optional<graph::Output> indices = std::nullopt;
  size_t indices_input = 0;  // which: its place in inputsOf()
  // Where the file asks for its device; empty: it doesn't.
  yaml::Mark device_mark = {};
};

// What one layer added to the graph. Value type.
struct AddedLayer {
  std::string path;  // "stage1/0/conv2d"
  std::string text;  // its settings, see Layer::text(); of one that holds others without theirs
  int depth = 0;     // 0: of the model's list; 1: of a list that such a layer holds
  graph::Output output;
  // Its nodes are those of [first_node, end_node), with those of the layers that it holds.
  int32_t first_node = 0, end_node = 0;
};

// A graph with the names of what goes in and comes out. Value type.
struct ModelGraph {
  graph::Graph graph;
  graph::Output features;  // fed: [batch, input shape...] of ModelSpec::input_dtype
  graph::Output labels;    // fed: classes [batch], or float32 targets [batch, units]
  // Fed: int32 [batch, count], of each ModelSpec::categories; the first may be `features`.
  std::vector<graph::Output> categories;
  // Fed where there is dropout, int64 [2]: the job's seed and the number of the batch, from which
  // each Dropout draws its mask. Training graphs only.
  std::optional<graph::Output> random_key;
  graph::Output logits;     // the last layer's output, float32 [batch, units]
  graph::Output data_loss;  // scalar: without the layers' penalties
  graph::Output loss;       // scalar: the mean of loss.h's terms, and the layers' penalties
  std::optional<graph::Output> accuracy;  // scalar, where the model asks for it
  bool outputs_wanted = false;            // by the model's other metrics
  std::vector<ModelVariable> variables;   // in creation order: that of the layers
  std::vector<AddedLayer> layers;         // likewise; one that holds others before them
};

// What examples are fed as, in the order of a data set's parts: features, labels, the categories
// that aren't the features.
std::vector<graph::Output> inputsOf(const ModelGraph& model);

// The gradient of a table of rows.
enum class TableGradient : uint8_t {
  kDense,  // of the whole table
  // Of the rows that a step looked up: the variable is sparse. Only of a table of which one Gather
  // reads rows that the examples name, and nothing else reads it.
  kSparse,
};

// uint8 features are pixels, which are divided by 255. One unit tells class 0 from class 1. A layer
// "softmax" makes the variables "softmax/weights" and "softmax/biases". `table_gradient`: where
// sparse updates are allowed; a job's is trainingGraphOf()'s to say (train/initial_values.h).
// Errors: yaml::ErrorAt of kBadConfig, "job.yaml:9:7: error: ...", naming the layer whose input
// doesn't fit it, a variable too large to count, or a model that has no variable, whose output
// isn't [batch, units], or whose loss or metrics don't fit units and labels.
ModelGraph buildTrainingGraph(const ModelSpec& model, int64_t batch_size,
                              TableGradient table_gradient = TableGradient::kDense);

// The same without gradients and updates: as training sees a batch.
ModelGraph buildForwardGraph(const ModelSpec& model, int64_t batch_size);

// The same variables, and the same layers but dropout, without gradients and updates.
ModelGraph buildEvaluationGraph(const ModelSpec& model, int64_t batch_size);

// How many elements the gradients of a step have whatever it reads: those of the sparse variables
// come beside them, as many as the rows that a batch names.
uint64_t denseGradientElements(const ModelGraph& model);

// What labels are compared with.
struct ModelOutput {
  int64_t units = 0;                 // of one example: the classes, or its targets
  const LayerSpec* layer = nullptr;  // the last one with variables; borrowed from the model
};
// Errors: as buildEvaluationGraph().
ModelOutput outputOf(const ModelSpec& model);

// What is fed and no layer reads: "the features", "the categories 'user'".
// Errors: as buildEvaluationGraph().
std::vector<std::string> unreadInputsOf(const ModelSpec& model);

// What whole numbers that name rows of a table are compared with.
struct Vocabulary {
  size_t input = 0;   // which of inputsOf() they are
  int64_t size = 0;   // they are below it
  std::string layer;  // "words", or "block/0/embedding"
};
// Of each table whose rows the examples name.
// Errors: as buildEvaluationGraph().
std::vector<Vocabulary> vocabulariesOf(const ModelSpec& model);

}  // namespace dtf::model
