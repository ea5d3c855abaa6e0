#include "common/train/model_builder.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/cluster/error_at.h"
#include "common/graph/autodiff.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"

namespace dtf::train {

namespace {

using cluster::Activation;
using cluster::LayerSpec;
using cluster::Loss;
using cluster::ModelSpec;
using graph::Builder;
using graph::Output;

constexpr double kPixelScale = 1.0 / 255.0;
constexpr const char* kNothingToTrain = "the model has nothing to train: add a 'dense' layer";

[[noreturn]] void failAt(const cluster::Mark& mark, const std::string& what) {
  throw cluster::ErrorAt(ErrorCode::kBadConfig, mark, what);
}

// The shape of one example: without the batch.
Shape withoutBatch(const Shape& shape) {
  return Shape(std::vector<int64_t>(shape.dims().begin() + 1, shape.dims().end()));
}

// [28, 28] for [28, 28, 1]: the same bytes.
Shape withoutSingleChannel(const Shape& shape) {
  if (shape.rank() != 3 || shape.dim(2) != 1) return shape;
  return Shape{shape.dim(0), shape.dim(1)};
}

Shape withBatch(const std::vector<int64_t>& example, int64_t batch_size) {
  std::vector<int64_t> dims = {batch_size};
  dims.insert(dims.end(), example.begin(), example.end());
  return Shape(std::move(dims));
}

// Builds one graph, forwards.
// Borrows: the model and the result, for one call of build.
class ModelBuilder {
 public:
  ModelBuilder(const ModelSpec& model, int64_t batch_size, bool training, ModelGraph& result)
      : model_(model),
        batch_size_(batch_size),
        training_(training),
        result_(result),
        builder_(result.graph) {}

  void build() {
    checkSizes();
    result_.features =
        builder_.placeholder("features", DType::kUInt8, withBatch(model_.input_shape, batch_size_));
    result_.labels = builder_.placeholder("labels", DType::kUInt8, Shape{batch_size_});
    if (std::ranges::any_of(model_.layers, [this](const LayerSpec& l) { return drops(l); }))
      result_.random_key = builder_.placeholder("random_key", DType::kInt64, Shape{2});
    x_ = builder_.normalise(result_.features, kPixelScale);
    for (const LayerSpec& layer : model_.layers) addLayer(layer);
    checkOutput();
    result_.logits = x_;
    const Builder::Scope scope = builder_.nameScope("loss");
    result_.loss = builder_.mean(lossPerExample());
    if (model_.accuracy) result_.accuracy = builder_.accuracy(x_, result_.labels);
  }

 private:
  const Shape& shape() const { return result_.graph.spec(x_).shape; }

  // What a batch of examples takes is counted in int64 from here on.
  void checkSizes() const {
    int64_t elements = batch_size_;
    bool fits = batch_size_ > 0;
    for (const int64_t dim : model_.input_shape)
      fits = fits && dim > 0 && !__builtin_mul_overflow(elements, dim, &elements);
    if (!fits)
      failAt(model_.mark,
             fmt::format("a batch of {} examples of the model's input shape cannot be counted",
                         batch_size_));
  }

  void addLayer(const LayerSpec& layer) {
    const Builder::Scope scope = builder_.nameScope(layer.name);
    switch (layer.type) {
      case LayerSpec::Type::kFlatten:
        if (shape().rank() != 2)
          x_ = builder_.reshape(x_, Shape{batch_size_, shape().elements() / batch_size_});
        return;
      case LayerSpec::Type::kDense:
        addDense(layer);
        return;
      case LayerSpec::Type::kActivation:
        activate(layer.activation.activation);
        return;
      case LayerSpec::Type::kDropout:
        if (drops(layer))
          x_ = builder_.dropout(x_, *result_.random_key, layer.dropout.rate, dropout_layers_);
        ++dropout_layers_;
        return;
    }
  }

  bool drops(const LayerSpec& layer) const {
    return training_ && layer.type == LayerSpec::Type::kDropout && layer.dropout.rate > 0;
  }

  void addDense(const LayerSpec& layer) {
    if (shape().rank() != 2)
      failAt(layer.mark,
             fmt::format("layer '{}' needs a flat input, got {}: add 'flatten' before it",
                         layer.name, withoutBatch(shape()).str()));
    const int64_t inputs = shape().dim(1);
    const int64_t units = layer.dense.units;
    int64_t elements = 0;
    if (units < 1 || __builtin_mul_overflow(inputs, units, &elements) ||
        __builtin_mul_overflow(batch_size_, units, &elements))
      failAt(layer.mark,
             fmt::format(
                 "layer '{}' has {} inputs and {} units: more weights than can be counted, or none",
                 layer.name, inputs, units));
    const Output weights =
        builder_.variable("weights", Shape{inputs, units}, layer.dense.kernel_initializer);
    result_.variables.push_back({weights, {}, {}});
    x_ = builder_.matMul(x_, weights);
    if (layer.dense.use_bias) {
      const Output biases = builder_.variable("biases", Shape{units}, "zeros");
      result_.variables.push_back({biases, {}, {}});
      x_ = builder_.biasAdd(x_, biases);
    }
    activate(layer.dense.activation);
  }

  void activate(Activation activation) {
    switch (activation) {
      case Activation::kNone:
        return;
      case Activation::kRelu:
        x_ = builder_.relu(x_);
        return;
      case Activation::kSigmoid:
        x_ = builder_.sigmoid(x_);
        return;
      case Activation::kTanh:
        x_ = builder_.tanh(x_);
        return;
    }
  }

  void checkOutput() const {
    if (result_.variables.empty()) failAt(model_.mark, kNothingToTrain);
    if (shape().rank() != 2)
      failAt(model_.mark,
             fmt::format(
                 "the loss needs an output of [units], the last layer gives {}: end with 'flatten' "
                 "and 'dense'",
                 withoutBatch(shape()).str()));
  }

  Output lossPerExample() {
    if (model_.loss == Loss::kSoftmaxCrossEntropy)
      return builder_.sparseSoftmaxCrossEntropy(x_, result_.labels).loss;
    const Output targets = builder_.oneHot(result_.labels, shape().dim(1));
    return model_.loss == Loss::kMse ? builder_.squaredDifference(x_, targets)
                                     : builder_.sigmoidCrossEntropy(x_, targets);
  }

  const ModelSpec& model_;
  const int64_t batch_size_;
  const bool training_;
  ModelGraph& result_;
  Builder builder_;
  Output x_;                    // of the last layer so far
  int64_t dropout_layers_ = 0;  // so far: each draws its own numbers
};

void addTraining(ModelGraph& model) {
  std::vector<Output> values;
  for (const ModelVariable& variable : model.variables) values.push_back(variable.value);
  const std::vector<Output> gradients = graph::addGradients(model.graph, model.loss, values);
  Builder builder(model.graph);
  const Builder::Scope scope = builder.nameScope("train");
  for (size_t i = 0; i < gradients.size(); ++i) {
    model.variables[i].gradient = gradients[i];
    model.variables[i].update = builder.applyGradient(values[i], gradients[i]);
  }
}

ModelGraph buildGraph(const ModelSpec& model, int64_t batch_size, bool training) {
  ModelGraph result{graph::Graph(graph::standardOps()), {}, {}, {}, {}, {}, {}, {}};
  ModelBuilder(model, batch_size, training, result).build();
  return result;
}

}  // namespace

ModelGraph buildEvaluationGraph(const ModelSpec& model, int64_t batch_size) {
  return buildGraph(model, batch_size, false);
}

ModelGraph buildTrainingGraph(const ModelSpec& model, int64_t batch_size) {
  ModelGraph result = buildGraph(model, batch_size, true);
  addTraining(result);
  return result;
}

const LayerSpec* findOutputLayer(const ModelSpec& model) {
  const auto output =
      std::find_if(model.layers.rbegin(), model.layers.rend(),
                   [](const LayerSpec& layer) { return layer.type == LayerSpec::Type::kDense; });
  return output == model.layers.rend() ? nullptr : &*output;
}

void checkExampleShape(const ModelSpec& model, const Shape& example_shape,
                       const std::string& name) {
  const Shape wanted(model.input_shape);
  if (withoutSingleChannel(wanted) == withoutSingleChannel(example_shape)) return;
  failAt(model.shape_mark,
         fmt::format("the model reads examples of shape {}, those of {} have {}: set "
                     "model.input.shape to it, or use other images",
                     wanted.str(), name, example_shape.str()));
}

std::shared_ptr<const data::Dataset> checkedDataset(const ModelSpec& model,
                                                    std::shared_ptr<const data::Dataset> dataset) {
  DTF_CHECK(dataset != nullptr);
  checkExampleShape(model, dataset->exampleShape(), dataset->names().images);
  const LayerSpec* output = findOutputLayer(model);
  if (output == nullptr) failAt(model.mark, kNothingToTrain);
  data::checkLabels(dataset->labels(), dataset->names().labels, output->dense.units, output->name);
  return dataset;
}

}  // namespace dtf::train
