#pragma once

// Builds the graph that trains or evaluates a model. Every worker builds the same graph from the
// same file, so their variables, and with them the placement, agree.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/graph/graph.h"
#include "common/model/model_spec.h"

namespace dtf::model {

// A variable, with the nodes that training adds for it.
struct ModelVariable {
  graph::Output value;
  // The gradient of the loss; for a moving average the batch's statistic. Training graphs only.
  std::optional<graph::Output> gradient;
  // ApplyGradient, or ApplySparseGradient for a sparse variable; training graphs only.
  std::optional<graph::NodeId> update;
  // Set for a moving average (arena::VariableInfo): it isn't trained, and training steps don't read
  // it.
  std::optional<double> momentum;
  // Set for a sparse variable: the row numbers that the step looks up, which are one of the inputs,
  // perhaps reshaped. `gradient` has a row for each.
  std::optional<graph::Output> indices = std::nullopt;
  size_t indices_input = 0;  // their place in inputsOf()
  // Where the file asks for its device; empty if it doesn't.
  yaml::Mark device_mark = {};
};

// The nodes that one layer added to the graph. Value type.
struct AddedLayer {
  std::string path;  // "stage1/0/conv2d"
  std::string text;  // the first line of its settings (Layer::text()), without the layers within
  int depth = 0;     // 0: in the model's list; 1: in a list of such a layer
  graph::Output output;
  // Its nodes, with those of the layers within it, are [first_node, end_node).
  int32_t first_node = 0, end_node = 0;
};

// A graph with its inputs and outputs. Value type.
struct ModelGraph {
  graph::Graph graph;
  graph::Output features;  // fed: [batch, input shape...] of ModelSpec::input_dtype
  graph::Output labels;    // fed: classes [batch], or float32 targets [batch, units]
  // Fed: int32 [batch, count] for each of ModelSpec::categories; the first may be `features`.
  std::vector<graph::Output> categories;
  // Fed if there is dropout, int64 [2]: the job's seed and the number of the batch, from which each
  // Dropout draws its mask. Training graphs only.
  std::optional<graph::Output> random_key;
  graph::Output logits;     // the last layer's output, float32 [batch, units]
  graph::Output data_loss;  // scalar: without the layers' penalties
  graph::Output loss;       // scalar: the mean of loss.h's terms, and the layers' penalties
  std::optional<graph::Output> accuracy;  // scalar, where the model asks for it
  std::vector<graph::Output> scalars{};   // in the order of ModelSpec::scalars
  bool outputs_wanted = false;            // by the model's other metrics
  std::vector<ModelVariable> variables;   // in the order of the layers
  std::vector<AddedLayer> layers;         // likewise; a layer before the layers within it
  std::vector<yaml::Mark> cpu_marks;      // of ops that the file wants on the CPU of their worker
};

// Returns the tensors to feed, in the order of a data set's parts: features, labels, the categories
// that aren't the features.
std::vector<graph::Output> inputsOf(const ModelGraph& model);

// The gradient of a table of rows.
enum class TableGradient : uint8_t {
  kDense,  // of the whole table
  // Of the rows that a step looked up: the variable is sparse. Only for a table that one Gather
  // reads by numbers of the examples, and that nothing else reads.
  kSparse,
};

// Builds the graph of a training step. uint8 features are pixels, which are divided by 255. One
// unit tells class 0 from class 1. A layer "softmax" makes the variables "softmax/weights" and
// "softmax/biases". kSparse permits sparse updates; trainingGraphOf() decides for a job
// (train/initial_values.h).
// Errors: yaml::ErrorAt of kBadConfig, "job.yaml:9:7: error: ...", for an input that doesn't fit
// its layer, a variable too large to count, and a model that has no variable, whose output isn't
// [batch, units], or whose loss or metrics don't fit units and labels.
ModelGraph buildTrainingGraph(const ModelSpec& model, int64_t batch_size,
                              TableGradient table_gradient = TableGradient::kDense);

// Builds the forward pass of a training step, without gradients and updates.
ModelGraph buildForwardGraph(const ModelSpec& model, int64_t batch_size);

// Builds the graph of an evaluation: the same variables, and the layers without dropout, gradients
// and updates.
ModelGraph buildEvaluationGraph(const ModelSpec& model, int64_t batch_size);

// Returns the number of elements in the gradients of all dense variables. Gradients of sparse
// variables come on top: as many rows as a batch looks up.
uint64_t denseGradientElements(const ModelGraph& model);

// The output that labels are compared with.
struct ModelOutput {
  int64_t units = 0;                 // of one example: the classes, or its targets
  const LayerSpec* layer = nullptr;  // the last one with variables; borrowed from the model
};
// Errors: see buildEvaluationGraph().
ModelOutput outputOf(const ModelSpec& model);

// Returns the inputs that no layer reads: "the features", "the categories 'user'".
// Errors: see buildEvaluationGraph().
std::vector<std::string> unreadInputsOf(const ModelSpec& model);

// A bound of the whole numbers that are looked up in a table.
struct Vocabulary {
  size_t input = 0;   // their place in inputsOf()
  int64_t size = 0;   // the numbers must be below it
  std::string layer;  // "words", or "block/0/embedding"
};
// Returns the vocabulary of each table that the examples' numbers are looked up in.
// Errors: see buildEvaluationGraph().
std::vector<Vocabulary> vocabulariesOf(const ModelSpec& model);

}  // namespace dtf::model
