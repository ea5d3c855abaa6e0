#include "common/train/model_builder.h"

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "tests/unit/train/models.h"

namespace dtf::train {
namespace {

using cluster::Activation;
using cluster::Loss;
using cluster::ModelSpec;

// One line a node: "name = Op(inputs) [shape]".
std::string text(const graph::Graph& graph) {
  std::string lines;
  for (const graph::Node& node : graph.nodes()) {
    lines += node.name + " = " + node.op + "(";
    for (const graph::Output& input : node.inputs)
      lines += (&input == &node.inputs.front() ? "" : ", ") + graph.node(input.node).name;
    lines += ")";
    for (const graph::TensorSpec& output : node.outputs) lines += " " + output.shape.str();
    lines += "\n";
  }
  return lines;
}

std::string failure(const ModelSpec& model) {
  try {
    buildTrainingGraph(model, 100);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    return error.message();
  }
  return "no error";
}

TEST(ModelBuilder, BuildsTheSoftmaxModel) {
  const ModelGraph model = buildEvaluationGraph(softmaxModel(), 100);
  EXPECT_EQ(text(model.graph),
            "features = Placeholder() [100, 28, 28, 1]\n"
            "labels = Placeholder() [100]\n"
            "Normalise = Normalise(features) [100, 28, 28, 1]\n"
            "flatten/Reshape = Reshape(Normalise) [100, 784]\n"
            "softmax/weights = Variable() [784, 10]\n"
            "softmax/MatMul = MatMul(flatten/Reshape, softmax/weights) [100, 10]\n"
            "softmax/biases = Variable() [10]\n"
            "softmax/BiasAdd = BiasAdd(softmax/MatMul, softmax/biases) [100, 10]\n"
            "loss/SparseSoftmaxCrossEntropyWithLogits = "
            "SparseSoftmaxCrossEntropyWithLogits(softmax/BiasAdd, labels) [100] [100, 10]\n"
            "loss/Mean = Mean(loss/SparseSoftmaxCrossEntropyWithLogits) []\n"
            "loss/Accuracy = Accuracy(softmax/BiasAdd, labels) []\n");
  EXPECT_EQ(model.graph.node(model.loss.node).name, "loss/Mean");
  EXPECT_EQ(model.graph.node(model.accuracy->node).name, "loss/Accuracy");
}

TEST(ModelBuilder, TrainingAddsOneUpdatePerVariable) {
  ModelSpec spec = softmaxModel();
  spec.layers = {flatten(), dense("hidden", 32, Activation::kRelu), dense("softmax", 10)};
  const ModelGraph model = buildTrainingGraph(spec, 50);
  std::vector<std::string> names;
  for (const ModelVariable& variable : model.variables) {
    names.push_back(model.graph.node(variable.value.node).name);
    EXPECT_EQ(model.graph.spec(*variable.gradient), model.graph.spec(variable.value));
    const graph::Node& update = model.graph.node(*variable.update);
    EXPECT_EQ(update.op, "ApplyGradient");
    EXPECT_EQ(update.inputs, (std::vector<graph::Output>{variable.value, *variable.gradient}));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"hidden/weights", "hidden/biases", "softmax/weights",
                                             "softmax/biases"}));
}

TEST(ModelBuilder, TrainingAndEvaluationAgreeOnTheVariables) {
  const ModelGraph train = buildTrainingGraph(softmaxModel(), 100);
  const ModelGraph eval = buildEvaluationGraph(softmaxModel(), 7);
  ASSERT_EQ(train.variables.size(), eval.variables.size());
  for (size_t i = 0; i < eval.variables.size(); ++i) {
    EXPECT_EQ(train.graph.node(train.variables[i].value.node).name,
              eval.graph.node(eval.variables[i].value.node).name);
    EXPECT_FALSE(eval.variables[i].gradient || eval.variables[i].update);
  }
}

TEST(ModelBuilder, BuildsEveryLossAndActivation) {
  for (const Loss loss : {Loss::kSoftmaxCrossEntropy, Loss::kMse, Loss::kSigmoidCrossEntropy}) {
    ModelSpec spec = softmaxModel();
    spec.loss = loss;
    spec.layers = {flatten(), dense("a", 8, Activation::kTanh), dense("b", 8, Activation::kSigmoid),
                   activation("c", Activation::kRelu), dense("d", 10)};
    spec.layers[1].dense.use_bias = false;
    const ModelGraph model = buildTrainingGraph(spec, 4);
    EXPECT_EQ(model.graph.spec(model.loss).shape, Shape());
    EXPECT_EQ(model.variables.size(), 5u);
    EXPECT_NE(model.graph.find("c/Relu"), nullptr);
    EXPECT_EQ(model.graph.find("a/biases"), nullptr);
  }
}

TEST(ModelBuilder, OnlyTrainingDropsOut) {
  ModelSpec spec = softmaxModel();
  const std::string evaluation = text(buildEvaluationGraph(spec, 4).graph);
  spec.layers = {dropout("input", 0.2), flatten(), dropout("none", 0), dropout("last", 0.5),
                 dense("softmax", 10)};
  EXPECT_EQ(text(buildEvaluationGraph(spec, 4).graph), evaluation);
  const ModelGraph model = buildTrainingGraph(spec, 4);
  EXPECT_EQ(model.graph.spec(*model.random_key), (graph::TensorSpec{DType::kInt64, {2}}));
  EXPECT_EQ(model.graph.find("none/Dropout"), nullptr) << "nothing to drop";
  const graph::Node* first = model.graph.find("input/Dropout");
  const graph::Node* second = model.graph.find("last/Dropout");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->attribute<double>("rate"), 0.2);
  EXPECT_EQ(second->attribute<double>("rate"), 0.5);
  EXPECT_NE(first->attribute<int64_t>("layer"), second->attribute<int64_t>("layer"));
  EXPECT_EQ(first->inputs[1], *model.random_key);
  EXPECT_FALSE(buildTrainingGraph(softmaxModel(), 4).random_key);
}

TEST(ModelBuilder, NamesTheLayerThatNeedsAFlatInput) {
  ModelSpec spec = softmaxModel();
  spec.layers = {dense("softmax", 10, Activation::kNone, 9)};
  EXPECT_EQ(failure(spec),
            "job.yaml:9:7: error: layer 'softmax' needs a flat input, got [28, 28, 1]: add "
            "'flatten' before it");
}

TEST(ModelBuilder, RefusesAModelWithNothingToTrain) {
  ModelSpec spec = softmaxModel();
  spec.layers = {flatten()};
  EXPECT_EQ(failure(spec),
            "job.yaml:3:1: error: the model has nothing to train: add a 'dense' layer");
}

TEST(ModelBuilder, RefusesSizesThatCannotBeCounted) {
  ModelSpec spec = softmaxModel();
  spec.layers[1] = dense("huge", int64_t{1} << 62, Activation::kNone, 11);
  EXPECT_EQ(failure(spec).find(
                "job.yaml:11:7: error: layer 'huge' has 784 inputs and 4611686018427387904 units"),
            0u);
  spec = softmaxModel();
  spec.input_shape = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_EQ(failure(spec).find("job.yaml:3:1: error: a batch of 100 examples"), 0u);
}

data::Dataset dataset(Shape shape, uint8_t label) {
  data::ByteBlock images(static_cast<size_t>(shape.elements()));
  std::fill_n(images.data(), images.size(), uint8_t{0});
  data::ByteBlock labels(1);
  labels.data()[0] = label;
  return {{"images.gz", "labels.gz"}, std::move(shape), std::move(images), std::move(labels)};
}

std::string mismatch(data::Dataset dataset, const ModelSpec& model = softmaxModel()) {
  try {
    checkedDataset(model, std::make_shared<data::Dataset>(std::move(dataset)));
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

TEST(CheckDataset, RefusesImagesOfAnotherShapeAndLabelsWithoutUnit) {
  EXPECT_EQ(mismatch(dataset({28, 28, 1}, 9)), "no error");
  EXPECT_EQ(mismatch(dataset({32, 32, 3}, 9)),
            "job.yaml:4:10: error: the model reads examples of shape [28, 28, 1], those of "
            "images.gz have [32, 32, 3]: set model.input.shape to it, or use other images");
  EXPECT_NE(mismatch(dataset({28, 28, 3}, 9)), "no error");
  EXPECT_EQ(mismatch(dataset({28, 28, 1}, 10)),
            "labels.gz: example 0 has label 10, but layer 'softmax' has 10 units (labels 0 to 9): "
            "give it at least 11 "
            "units, or use other labels");
}

TEST(CheckDataset, ASingleChannelNeedsNoDimensionOfItsOwn) {
  ModelSpec model = softmaxModel();
  model.input_shape = {28, 28};
  EXPECT_EQ(mismatch(dataset({28, 28, 1}, 9), model), "no error");
  EXPECT_NE(mismatch(dataset({28, 28, 3}, 9), model), "no error");
  model.input_shape = {28, 27};
  EXPECT_NE(mismatch(dataset({28, 28, 1}, 9), model), "no error");
}

}  // namespace
}  // namespace dtf::train
