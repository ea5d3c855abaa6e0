#pragma once

// From a model as the YAML describes it to the graph that trains or evaluates it. Every worker
// builds the same graph from the same file, so their variables, and with them the placement, agree.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/cluster/spec.h"
#include "common/data/dataset.h"
#include "common/graph/graph.h"

namespace dtf::train {

// What the training adds to one variable.
struct ModelVariable {
  graph::Output value;
  std::optional<graph::Output> gradient;  // of the loss; training graphs only
  std::optional<graph::NodeId> update;    // the ApplyGradient; training graphs only
};

// A graph with the names of what goes in and comes out. Value type.
struct ModelGraph {
  graph::Graph graph;
  graph::Output features;  // fed: uint8 [batch, input shape...], pixels 0 to 255
  graph::Output labels;    // fed: uint8 [batch]
  // Fed where there is dropout, int64 [2]: the job's seed and the number of the batch, from which
  // each Dropout draws its mask. Training graphs only.
  std::optional<graph::Output> random_key;
  graph::Output logits;                   // the last layer's output, float32 [batch, units]
  graph::Output loss;                     // scalar: the mean over the batch
  std::optional<graph::Output> accuracy;  // scalar, where the model asks for it
  std::vector<ModelVariable>
      variables;  // in creation order: that of the layers, weights before biases
};

// Pixels are divided by 255. A layer "softmax" makes the variables "softmax/weights" and
// "softmax/biases". The losses:
//   softmax_cross_entropy  the mean of SparseSoftmaxCrossEntropyWithLogits
//   mse                    the mean of (output - one hot)^2 over the batch and the units
//   sigmoid_cross_entropy  the mean of SigmoidCrossEntropyWithLogits against one hot, likewise
// Errors: cluster::ErrorAt of kBadConfig, "job.yaml:9:7: error: ...", naming the layer whose input
// doesn't fit it, a variable too large to count, or a model that has no variable or whose output
// isn't [batch, units].
ModelGraph buildTrainingGraph(const cluster::ModelSpec& model, int64_t batch_size);

// The same variables, and the same layers but dropout, without gradients and updates.
ModelGraph buildEvaluationGraph(const cluster::ModelSpec& model, int64_t batch_size);

// The last dense layer, whose units are the classes; nullptr: there is none, hence nothing to train.
const cluster::LayerSpec* findOutputLayer(const cluster::ModelSpec& model);

// `name` is what messages call the images. [28, 28] and [28, 28, 1] are one shape.
// Errors: kBadConfig at model.input.shape for examples of another shape.
void checkExampleShape(const cluster::ModelSpec& model, const Shape& example_shape,
                       const std::string& name);

// Returns `dataset` when its examples are what the model reads, and its labels classes that the
// model has.
// Errors: as checkExampleShape(); kBadConfig for a model without a dense layer; kBadData for a label without a unit, as
// data::checkLabels().
std::shared_ptr<const data::Dataset> checkedDataset(const cluster::ModelSpec& model,
                                                    std::shared_ptr<const data::Dataset> dataset);

}  // namespace dtf::train
