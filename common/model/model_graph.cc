#include "common/model/model_graph.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/graph/autodiff.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/graph/prune.h"
#include "common/model/layer.h"
#include "common/model/layer_builder.h"
#include "common/model/loss.h"
#include "common/model/metrics.h"
#include "common/model/short_batch.h"
#include "common/yaml/error_at.h"

namespace dtf::model {

namespace {

using graph::Builder;
using graph::Output;

constexpr double kPixelScale = 1.0 / 255.0;

[[noreturn]] void failAt(const yaml::Mark& mark, const std::string& what) {
  throw yaml::ErrorAt(ErrorCode::kBadConfig, mark, what);
}

Shape withBatch(const std::vector<int64_t>& example, int64_t batch_size) {
  std::vector<int64_t> dims = {batch_size};
  dims.insert(dims.end(), example.begin(), example.end());
  return Shape(std::move(dims));
}

// Checks that an int64 can count the elements of a batch, as all later code assumes.
void checkSizes(const ModelSpec& model, int64_t batch_size) {
  int64_t elements = batch_size;
  bool fits = batch_size > 0;
  for (const int64_t dim : model.input_shape)
    fits = fits && dim > 0 && !__builtin_mul_overflow(elements, dim, &elements);
  if (!fits)
    failAt(model.mark,
           fmt::format("a batch of {} examples of the model's input shape cannot be counted",
                       batch_size));
}

void checkOutput(const ModelSpec& model, const LayerBuilder& layers, const ModelGraph& result) {
  if (std::ranges::all_of(result.variables,
                          [](const ModelVariable& each) { return each.momentum.has_value(); }))
    failAt(model.mark, "the model has nothing to train: add a 'dense' layer");
  if (layers.shape(result.logits).rank() != 2)
    failAt(model.mark,
           fmt::format("the loss needs an output of [units], the last layer gives {}: end with "
                       "'flatten' and 'dense'",
                       layers.exampleShape(result.logits).str()));
}

// Rejects a last layer of probabilities: the loss would take them for logits, and train badly.
void checkLogits(const ModelSpec& model, const std::string& op) {
  const bool softmax = model.loss.kind == Loss::kSoftmaxCrossEntropy && op == "Softmax";
  const bool sigmoid = model.loss.kind == Loss::kSigmoidCrossEntropy && op == "Sigmoid";
  if (!softmax && !sigmoid) return;
  const std::string_view name = softmax ? "softmax" : "sigmoid";
  failAt(model.layers.back().mark,
         fmt::format("{1} takes the {0} itself, and the last layer has taken it already: leave "
                     "out its {0}; predictions are probabilities all the same",
                     name, nameOf(model.loss.kind)));
}

void checkLoss(const ModelSpec& model, int64_t units, const LayerSpec* last) {
  DTF_CHECK(last != nullptr && units > 0);
  const bool softmax = model.loss.kind == Loss::kSoftmaxCrossEntropy;
  if (softmax && model.hasTargets())
    failAt(model.mark,
           "sparse_categorical_crossentropy wants one class for each example, and the data have "
           "targets: choose binary_crossentropy (each unit by itself), mean_squared_error, "
           "mean_absolute_error, huber or hinge");
  const auto weights = static_cast<int64_t>(model.loss.class_weights.size());
  if (model.loss.kind == Loss::kTensor && model.hasTargets() && units != model.loss.targets)
    failAt(model.loss_mark,
           fmt::format("the labels have {} targets, and layer '{}' has {} units, one for each: set "
                       "'targets' of the loss",
                       model.loss.targets, last->name, units));
  if (weights > 0 && model.hasTargets())
    failAt(model.mark,
           "'class_weights' weigh the examples of each class, and the data have targets: "
           "leave them out");
  const int64_t classes = units == 1 && !softmax ? 2 : units;  // one unit serves two classes
  if (weights > 0 && weights != classes)
    failAt(model.mark,
           fmt::format("'class_weights' has {} numbers, but layer '{}' has {} units: give "
                       "one for each class",
                       weights, last->name, units));
  if (softmax && units == 1)
    failAt(
        last->mark,
        fmt::format("the softmax of one unit is 1 whatever it reads: give layer '{}' 2 units, or "
                    "choose binary_crossentropy for two classes",
                    last->name));
  if (model.accuracy && model.hasTargets())
    failAt(model.mark,
           "metric accuracy counts classes, and the data have targets: leave it out; the "
           "evaluation's loss says how good the model is");
  for (const MetricSpec& metric : model.metrics)
    if (const auto fault = metricFault(metric, model, units)) failAt(model.mark, *fault);
}

// One unit is class 1 above the middle of its range: the accuracy compares it with the middle as a
// second unit.
Output addAccuracy(Builder& ops, const LossSpec& loss, Output output, Output labels) {
  const Shape shape = ops.graph().spec(output).shape;
  if (shape.dim(1) != 1) return ops.accuracy(output, labels);
  const bool logit = loss.kind == Loss::kSigmoidCrossEntropy || loss.kind == Loss::kHinge;
  const Output middle = ops.constant(shape, logit ? 0 : 0.5);
  return ops.accuracy(ops.concat({middle, output}, 1), labels);
}

void addCategories(const ModelSpec& model, int64_t batch_size, Builder& ops, ModelGraph& result) {
  for (const LayerSpec& layer : model.layers)
    if (layer.name == "categories" && !model.categories.empty())
      failAt(layer.mark, "no layer can be named 'categories' where the data have some");
  const Builder::Scope scope = ops.nameScope("categories");
  for (const CategoryInput& input : model.categories)
    result.categories.push_back(
        model.features_are_categories && result.categories.empty()
            ? result.features
            : ops.placeholder(input.name, DType::kInt32, Shape{batch_size, input.count}));
}

// Returns the float32 scalar that the file calls `name`: the whole name of a tensor, or its name in
// one of the model's `graph` layers.
Output scalarOf(const ModelSpec& model, const graph::Graph& graph, const std::string& name,
                const yaml::Mark& mark) {
  const auto isThere = [&](const std::string& tensor) {
    return graph.find(tensor) != nullptr || graph.find(tensor.substr(0, tensor.rfind(':')));
  };
  std::vector<std::string> found;
  if (isThere(name)) found.push_back(name);
  for (const LayerSpec& layer : model.layers)
    if (layer.type == "graph" && isThere(layer.name + "/" + name))
      found.push_back(layer.name + "/" + name);
  if (found.size() > 1)
    failAt(mark, fmt::format("there is more than one {}: write '{}' or '{}'", yaml::inQuotes(name),
                             found[0], found[1]));
  try {
    const Output output = graph::findTensor(graph, found.empty() ? name : found[0]);
    const graph::TensorSpec& spec = graph.spec(output);
    if (spec.dtype == DType::kFloat32 && spec.shape.rank() == 0) return output;
    failAt(mark, fmt::format("{} is {}{}, and must be a float32 scalar: name its Mean, or Cast it "
                             "first",
                             yaml::inQuotes(name), dtypeName(spec.dtype), spec.shape.str()));
  } catch (const yaml::ErrorAt&) {
    throw;
  } catch (const Error& error) {
    failAt(mark, error.message() + "; the ops of a model's 'graph' have scalars");
  }
}

// An Identity, so that each forward node comes before the loss.
Output ownLoss(const ModelSpec& model, Builder& ops) {
  const Output loss = scalarOf(model, ops.graph(), model.loss.tensor, model.loss_mark);
  return {ops.node("Identity", {loss})};
}

using Use = LayerBuilder::Use;

ModelGraph buildGraph(const ModelSpec& model, int64_t batch_size, Use use,
                      const LayerSpec** last_with_variables = nullptr) {
  const bool training = use != Use::kEvaluation;
  checkSizes(model, batch_size);
  ModelGraph result{graph::Graph(graph::standardOps()), {}, {}, {}, {}, {}, {}, {}, {}, {}};
  LayerBuilder layers(model, result, batch_size, use);
  Builder& ops = layers.ops();
  result.features =
      ops.placeholder("features", model.input_dtype, withBatch(model.input_shape, batch_size));
  const bool has_own_loss = model.loss.kind == Loss::kTensor;
  if (!model.hasTargets())
    result.labels = ops.placeholder("labels", model.labels_dtype, Shape{batch_size});
  else if (has_own_loss)
    result.labels =
        ops.placeholder("labels", DType::kFloat32, Shape{batch_size, model.loss.targets});
  addCategories(model, batch_size, ops, result);
  const bool draws = std::any_of(model.layers.begin(), model.layers.end(), [](const auto& layer) {
    return layer.layer->drawsRandomNumbers();
  });
  if (training && draws) result.random_key = ops.placeholder("random_key", DType::kInt64, Shape{2});
  const bool pixels = model.input_dtype == DType::kUInt8;
  const Output x = layers.add(
      model.layers, pixels ? ops.normalise(result.features, kPixelScale) : result.features);
  if (last_with_variables != nullptr) *last_with_variables = layers.lastWithVariables();
  result.logits = x;
  checkOutput(model, layers, result);
  if (training) checkLogits(model, ops.graph().node(x.node).op);
  checkLoss(model, layers.shape(x).dim(1), layers.lastWithVariables());
  if (model.hasTargets() && !has_own_loss)
    result.labels = ops.placeholder("labels", DType::kFloat32, layers.shape(x));
  for (const ModelSpec::Scalar& scalar : model.scalars)
    result.scalars.push_back(scalarOf(model, ops.graph(), scalar.tensor, scalar.mark));
  const Builder::Scope scope = ops.nameScope("loss");
  result.loss =
      has_own_loss ? ownLoss(model, ops) : ops.mean(lossTerms(ops, model.loss, x, result.labels));
  result.data_loss = result.loss;
  for (const Output& penalty : layers.penalties()) result.loss = ops.add(result.loss, penalty);
  result.outputs_wanted = !model.metrics.empty();
  if (model.accuracy) result.accuracy = addAccuracy(ops, model.loss, x, result.labels);
  return result;
}

// Rejects layers that the loss doesn't read: only their penalties would have gradients.
void checkAllRead(const ModelSpec& spec, const ModelGraph& model) {
  const graph::Graph needed = graph::prune(model.graph, {}, std::array{model.data_loss}, {}).graph;
  for (const ModelVariable& variable : model.variables) {
    // The loss reads a moving average's statistic, not the average itself.
    const Output& read = variable.momentum ? *variable.gradient : variable.value;
    const std::string& name = model.graph.node(read.node).name;
    if (needed.find(name) != nullptr) continue;
    const std::string layer = name.substr(0, name.rfind('/'));
    const std::string listed = name.substr(0, name.find('/'));
    const auto at = std::find_if(spec.layers.begin(), spec.layers.end(),
                                 [&](const LayerSpec& each) { return each.name == listed; });
    failAt(at == spec.layers.end() ? spec.mark : at->mark,
           fmt::format("nothing reads layer '{}': take it out, or name it in 'from' or 'with' of "
                       "another one",
                       layer));
  }
}

// Returns the input that `tensor` is, reshaped or not; nullopt if it was computed.
std::optional<size_t> inputOf(const ModelGraph& model, Output tensor) {
  while (model.graph.node(tensor.node).op == "Reshape")
    tensor = model.graph.node(tensor.node).inputs[0];
  const std::vector<Output> inputs = inputsOf(model);
  const auto found = std::find(inputs.begin(), inputs.end(), tensor);
  if (found == inputs.end()) return std::nullopt;
  return static_cast<size_t>(found - inputs.begin());
}

// Returns the only look-up of the variable by an input; nullptr if anything else reads it.
const graph::Node* lookUpOf(const ModelGraph& model, Output variable) {
  const graph::Node* found = nullptr;
  for (const graph::Node& node : model.graph.nodes())
    for (const Output& input : node.inputs) {
      if (input != variable) continue;
      if (found != nullptr || node.op != "Gather") return nullptr;
      found = &node;
    }
  const bool is_table = found != nullptr && found->inputs[0] == variable;
  return is_table && inputOf(model, found->inputs[1]) ? found : nullptr;
}

// Returns the tensor to differentiate by: the variable, or the rows looked up in a sparse one.
Output addTrained(const ModelGraph& model, ModelVariable& variable, TableGradient table_gradient) {
  if (table_gradient == TableGradient::kDense) return variable.value;
  const graph::Node* const look_up = lookUpOf(model, variable.value);
  if (look_up == nullptr) return variable.value;
  variable.indices = look_up->inputs[1];
  variable.indices_input = *inputOf(model, look_up->inputs[1]);
  return {look_up->id};
}

void addTraining(ModelGraph& model, TableGradient table_gradient) {
  std::vector<Output> trained;
  for (ModelVariable& variable : model.variables)
    if (!variable.momentum) trained.push_back(addTrained(model, variable, table_gradient));
  const std::vector<Output> gradients = graph::addGradients(model.graph, model.loss, trained);
  DTF_CHECK(gradients.size() == trained.size());
  Builder builder(model.graph);
  const Builder::Scope scope = builder.nameScope("train");
  auto next = gradients.begin();
  for (ModelVariable& variable : model.variables) {
    if (!variable.momentum) variable.gradient = *next++;
    DTF_CHECK(variable.gradient.has_value());
    variable.update = variable.indices ? builder.applySparseGradient(
                                             variable.value, *variable.gradient, *variable.indices)
                                       : builder.applyGradient(variable.value, *variable.gradient);
  }
}

ModelGraph trained(const ModelSpec& model, ModelGraph graph, TableGradient table_gradient) {
  checkAllRead(model, graph);
  addTraining(graph, table_gradient);
  return graph;
}

}  // namespace

std::vector<Output> inputsOf(const ModelGraph& model) {
  std::vector<Output> inputs = {model.features, model.labels};
  for (const Output& input : model.categories)
    if (input != model.features) inputs.push_back(input);
  return inputs;
}

ModelGraph buildEvaluationGraph(const ModelSpec& model, int64_t batch_size) {
  return buildGraph(model, batch_size, Use::kEvaluation);
}

// The batch may be an epoch's short last one.
ModelGraph buildForwardGraph(const ModelSpec& model, int64_t batch_size) {
  return buildGraph(model, batch_size, Use::kShortTraining);
}

ModelGraph buildTrainingGraph(const ModelSpec& model, int64_t batch_size,
                              TableGradient table_gradient) {
  return trained(model, buildGraph(model, batch_size, Use::kTraining), table_gradient);
}

ModelGraph buildShortTrainingGraph(const ModelSpec& model, int64_t batch_size,
                                   TableGradient table_gradient) {
  return trained(model, buildGraph(model, batch_size, Use::kShortTraining), table_gradient);
}

uint64_t denseGradientElements(const ModelGraph& model) {
  uint64_t elements = 0;
  for (const ModelVariable& variable : model.variables)
    if (!variable.indices)
      elements += static_cast<uint64_t>(model.graph.spec(variable.value).shape.elements());
  return elements;
}

ModelOutput outputOf(const ModelSpec& model) {
  ModelOutput output;
  const ModelGraph built = buildGraph(model, 1, Use::kEvaluation, &output.layer);
  output.units = built.graph.spec(built.logits).shape.dim(1);
  DTF_CHECK(output.layer != nullptr);
  return output;
}

std::vector<std::string> unreadInputsOf(const ModelSpec& model) {
  const ModelGraph built = buildGraph(model, 1, Use::kEvaluation);
  const graph::Graph needed = graph::prune(built.graph, {}, std::array{built.logits}, {}).graph;
  const auto is_read = [&](Output input) {
    return needed.find(built.graph.node(input.node).name) != nullptr;
  };
  std::vector<std::string> unread;
  if (!is_read(built.features) && !model.features_are_categories)
    unread.emplace_back("the features");
  for (size_t i = 0; i < built.categories.size(); ++i)
    if (!is_read(built.categories[i]))
      unread.push_back("the categories '" + model.categories[i].name + "'");
  return unread;
}

std::vector<Vocabulary> vocabulariesOf(const ModelSpec& model) {
  const ModelGraph built = buildGraph(model, 1, Use::kEvaluation);
  std::vector<Vocabulary> found;
  for (const graph::Node& node : built.graph.nodes()) {
    if (node.op != "Gather") continue;
    const std::optional<size_t> input = inputOf(built, node.inputs[1]);
    if (!input) continue;
    found.push_back({*input, built.graph.spec(node.inputs[0]).shape.dim(0), {}});
    // Inner layers come after outer ones.
    for (const AddedLayer& layer : built.layers)
      if (layer.first_node <= node.id.value && node.id.value < layer.end_node)
        found.back().layer = layer.path;
  }
  return found;
}

}  // namespace dtf::model
