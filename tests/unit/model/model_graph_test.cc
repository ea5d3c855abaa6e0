#include "common/model/model_graph.h"

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "tests/unit/model/models.h"

namespace dtf::model {
namespace {

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

TEST(ModelGraph, BuildsTheSoftmaxModel) {
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

TEST(ModelGraph, TrainingAddsOneUpdatePerVariable) {
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

TEST(ModelGraph, TrainingAndEvaluationAgreeOnTheVariables) {
  const ModelGraph train = buildTrainingGraph(softmaxModel(), 100);
  const ModelGraph eval = buildEvaluationGraph(softmaxModel(), 7);
  ASSERT_EQ(train.variables.size(), eval.variables.size());
  for (size_t i = 0; i < eval.variables.size(); ++i) {
    EXPECT_EQ(train.graph.node(train.variables[i].value.node).name,
              eval.graph.node(eval.variables[i].value.node).name);
    EXPECT_FALSE(eval.variables[i].gradient || eval.variables[i].update);
  }
}

TEST(ModelGraph, BuildsEveryLossAndActivation) {
  for (const Loss loss : {Loss::kSoftmaxCrossEntropy, Loss::kMse, Loss::kSigmoidCrossEntropy}) {
    ModelSpec spec = softmaxModel();
    spec.loss.kind = loss;
    spec.layers = {flatten(), dense("a", 8, Activation::kTanh, 0, "use_bias: false"),
                   dense("b", 8, Activation::kSigmoid), activation("c", Activation::kRelu),
                   dense("d", 10)};
    const ModelGraph model = buildTrainingGraph(spec, 4);
    EXPECT_EQ(model.graph.spec(model.loss).shape, Shape());
    EXPECT_EQ(model.variables.size(), 5u);
    EXPECT_NE(model.graph.find("c/Relu"), nullptr);
    EXPECT_EQ(model.graph.find("a/biases"), nullptr);
  }
}

TEST(ModelGraph, OnlyTrainingDropsOut) {
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

TEST(ModelGraph, NamesTheLayerThatNeedsAFlatInput) {
  ModelSpec spec = softmaxModel();
  spec.layers = {dense("softmax", 10, Activation::kNone, 9)};
  EXPECT_EQ(failure(spec),
            "job.yaml:9:7: error: layer 'softmax' needs a flat input, or [steps, features], got "
            "[28, 28, 1]: add "
            "'flatten' before it");
}

TEST(ModelGraph, NamesTheLayerThatNothingReads) {
  ModelSpec spec = softmaxModel();
  spec.layers = {flatten(), dense("read", 8), dense("unread", 8, Activation::kNone, 12),
                 dense("softmax", 10)};
  spec.layers[3].from = "read";
  EXPECT_EQ(failure(spec),
            "job.yaml:12:7: error: nothing reads layer 'unread': take it out, or name it in 'from' "
            "or 'with' of another one");
}

TEST(ModelGraph, RefusesAModelWithNothingToTrain) {
  ModelSpec spec = softmaxModel();
  spec.layers = {flatten()};
  EXPECT_EQ(failure(spec),
            "job.yaml:3:1: error: the model has nothing to train: add a 'dense' layer");
}

TEST(ModelGraph, RefusesSizesThatCannotBeCounted) {
  ModelSpec spec = softmaxModel();
  spec.input_shape = {int64_t{1} << 45};
  spec.layers = {dense("huge", 1'000'000, Activation::kNone, 11)};
  EXPECT_EQ(failure(spec).find(
                "job.yaml:11:7: error: layer 'huge' has 35184372088832 inputs and 1000000 units"),
            0u);
  spec.input_shape = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_EQ(failure(spec).find("job.yaml:3:1: error: a batch of 100 examples"), 0u);
}

TEST(ModelGraph, FeedsWhatTheDataHold) {
  ModelSpec spec = softmaxModel();
  spec.input_shape = {8};
  spec.layers = {dense("out", 3)};
  spec.input_dtype = DType::kFloat32;
  spec.labels_dtype = DType::kInt32;
  const ModelGraph classes = buildTrainingGraph(spec, 4);
  EXPECT_EQ(classes.graph.spec(classes.features), (graph::TensorSpec{DType::kFloat32, {4, 8}}));
  EXPECT_EQ(classes.graph.spec(classes.labels), (graph::TensorSpec{DType::kInt32, {4}}));
  EXPECT_EQ(classes.graph.find("Normalise"), nullptr) << "only pixels are divided by 255";
  spec.labels_dtype = DType::kFloat32;
  spec.loss.kind = Loss::kMse;
  spec.accuracy = false;
  const ModelGraph targets = buildTrainingGraph(spec, 4);
  EXPECT_EQ(targets.graph.spec(targets.labels), (graph::TensorSpec{DType::kFloat32, {4, 3}}));
}

// Such a model trains, but badly: its logits are between 0 and 1.
TEST(ModelGraph, AnActivationThatTheLossTakesItselfIsRefused) {
  ModelSpec spec = softmaxModel();
  spec.layers = {flatten(), dense("out", 3, Activation::kSoftmax, 9)};
  EXPECT_EQ(
      failure(spec),
      "job.yaml:9:7: error: sparse_categorical_crossentropy takes the softmax itself, and the last "
      "layer has taken it already: leave out its softmax; predictions are probabilities all "
      "the same");
  spec.loss.kind = Loss::kMse;
  EXPECT_EQ(failure(spec), "no error");
  spec.loss.kind = Loss::kSigmoidCrossEntropy;
  EXPECT_EQ(failure(spec), "no error") << "another one";
  spec.layers = {flatten(), dense("out", 3, Activation::kSigmoid, 9)};
  EXPECT_EQ(failure(spec).find("job.yaml:9:7: error: binary_crossentropy takes the sigmoid"), 0u);
}

TEST(ModelGraph, LossAndMetricsFitUnitsAndLabels) {
  ModelSpec spec = softmaxModel();
  spec.layers = {flatten(), dense("out", 1, Activation::kNone, 9)};
  EXPECT_EQ(failure(spec),
            "job.yaml:9:7: error: the softmax of one unit is 1 whatever it reads: give layer 'out' "
            "2 units, or choose binary_crossentropy for two classes");
  spec.loss.kind = Loss::kSigmoidCrossEntropy;
  EXPECT_EQ(failure(spec), "no error");
  spec.labels_dtype = DType::kFloat32;
  EXPECT_EQ(failure(spec).find("job.yaml:3:1: error: metric accuracy counts classes"), 0u);
  spec.accuracy = false;
  EXPECT_EQ(failure(spec), "no error");
  spec.loss.kind = Loss::kSoftmaxCrossEntropy;
  EXPECT_EQ(
      failure(spec).find("job.yaml:3:1: error: sparse_categorical_crossentropy wants one class"),
      0u);
}

TEST(ModelGraph, EveryClassHasAWeightOrNone) {
  ModelSpec spec = softmaxModel();
  spec.layers = {flatten(), dense("out", 3, Activation::kNone, 9)};
  spec.loss.class_weights = {1, 2};
  EXPECT_EQ(failure(spec),
            "job.yaml:3:1: error: 'class_weights' has 2 numbers, but layer 'out' has 3 units: give "
            "one for each class");
  spec.loss.class_weights.push_back(0.5);
  EXPECT_EQ(failure(spec), "no error");
}

TEST(ModelGraph, TheOutputIsThatOfTheLastLayer) {
  ModelSpec spec = softmaxModel();
  spec.layers = {flatten(), dense("hidden", 32), dense("last", 12),
                 activation("c", Activation::kRelu)};
  const ModelOutput output = outputOf(spec);
  EXPECT_EQ(output.units, 12);
  EXPECT_EQ(output.layer, &spec.layers[2]) << "the one whose units can be changed";
}

}  // namespace
}  // namespace dtf::model
