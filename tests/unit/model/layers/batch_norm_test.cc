#include <gtest/gtest.h>

#include "common/model/short_batch.h"
#include "tests/unit/model/layers/layer_test.h"

namespace dtf::model {
namespace {

const LayerSpec kNorm = layerOf("batch_normalization", "{}", "norm");

TEST(BatchNormLayer, KeepsMovingAveragesBesideWhatItTrains) {
  const BuiltLayer built({kNorm}, {4, 4, 3});
  EXPECT_EQ(built.variables(),
            "norm/gamma [3], norm/beta [3], norm/moving_mean [3], norm/moving_variance [3]");
  EXPECT_EQ(built.shape.str(), "[4, 4, 3]");
  const std::vector<ModelVariable>& variables = built.model.variables;
  for (size_t i : {0, 1}) EXPECT_EQ(variables[i].momentum, std::nullopt);
  for (size_t i : {2, 3}) {
    EXPECT_EQ(variables[i].momentum, 0.99);
    EXPECT_EQ(built.model.graph.node(variables[i].gradient->node).op, "FusedBatchNorm");
  }
  EXPECT_EQ(variables[2].gradient->index, 1) << "the batch's mean";
  EXPECT_EQ(variables[3].gradient->index, 2) << "the batch's variance";
  EXPECT_EQ(built.node("norm/moving_mean").attribute<std::string>("initializer"), "zeros");
  EXPECT_EQ(built.node("norm/moving_variance").attribute<std::string>("initializer"), "ones");
  EXPECT_EQ(kNorm.layer->meaning("n"),
            "batch_normalization n: momentum=0.99 epsilon=0.001 scale=true center=true");
}

TEST(BatchNormLayer, EvaluationReadsTheMovingAverages) {
  const BuiltLayer built({kNorm}, {7}, false);
  const graph::Node& node = built.model.graph.node(built.output.node);
  EXPECT_EQ(node.op, "FusedBatchNormInference");
  EXPECT_EQ(built.model.graph.node(node.inputs[3].node).name, "norm/moving_mean");
  EXPECT_EQ(built.model.graph.node(node.inputs[4].node).name, "norm/moving_variance");
  EXPECT_EQ(built.model.variables[2].gradient, std::nullopt);
}

TEST(BatchNormLayer, ScaleAndCenterCanBeLeftOut) {
  const LayerSpec bare = layerOf(
      "batch_normalization", "{scale: false, center: false, momentum: 0.9, epsilon: 0.1}", "norm");
  const BuiltLayer built({bare}, {5});
  EXPECT_EQ(built.variables(), "norm/moving_mean [5], norm/moving_variance [5]");
  EXPECT_EQ(built.model.variables[0].momentum, 0.9);
  EXPECT_EQ(bare.layer->meaning("n"),
            "batch_normalization n: momentum=0.9 epsilon=0.1 scale=false center=false");
}

TEST(BatchNormLayer, RefusesAMomentumThatNeverMoves) {
  EXPECT_THROW(layerOf("batch_normalization", "{momentum: 1}", "norm"), Error);
  EXPECT_THROW(layerOf("batch_normalization", "{epsilon: 0}", "norm"), Error);
}

// The softmax model with these layers.
ModelSpec modelWith(std::vector<LayerSpec> layers) {
  ModelSpec model = softmaxModel();
  model.layers = std::move(layers);
  return model;
}

std::string failureOf(const ModelSpec& model) {
  try {
    buildTrainingGraph(model, 10);
    return "";
  } catch (const Error& error) {
    return error.message();
  }
}

TEST(BatchNormLayer, TrainsGammaAndBetaAlone) {
  const ModelGraph model = buildTrainingGraph(modelWith({flatten(), kNorm, dense("out", 10)}), 10);
  ASSERT_EQ(model.variables.size(), 6u);
  EXPECT_EQ(model.graph.node(model.variables[0].gradient->node).op, "FusedBatchNormGrad");
  for (const size_t i : {2, 3}) {
    const graph::Node& update = model.graph.node(*model.variables[i].update);
    EXPECT_EQ(update.op, "ApplyGradient");
    EXPECT_EQ(update.inputs[0], model.variables[i].value);
    EXPECT_EQ(update.inputs[1], *model.variables[i].gradient);
  }
}

TEST(BatchNormLayer, AModelOfMovingAveragesAloneHasNothingToTrain) {
  const LayerSpec bare = layerOf("batch_normalization", "{scale: false, center: false}", "norm");
  EXPECT_NE(failureOf(modelWith({flatten(), bare})).find("nothing to train"), std::string::npos);
}

TEST(BatchNormLayer, OneNumberOfEachChannelInABatchIsRefused) {
  const ModelSpec model = modelWith({flatten(), kNorm, dense("out", 10)});
  try {
    buildTrainingGraph(model, 1);
    FAIL() << "built";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("layer 'norm' has one number of each channel in a batch"),
              std::string::npos)
        << error.message();
  }
  buildTrainingGraph(model, 2);
  buildEvaluationGraph(model, 1);
  buildShortTrainingGraph(model, 1, TableGradient::kDense);
  buildForwardGraph(model, 1);
}

// The penalty is part of the loss, but the layer's output isn't.
TEST(BatchNormLayer, APenaltyDoesNotReadItsLayer) {
  LayerSpec out = dense("out", 10);
  out.from = "flatten";
  const LayerSpec unread =
      dense("unread", 3, Activation::kNone, 8, "kernel_regularizer: {l2: 0.1}");
  EXPECT_NE(failureOf(modelWith({flatten(), unread, out})).find("nothing reads layer 'unread'"),
            std::string::npos);
}

TEST(BatchNormLayer, OneThatNothingReadsIsNamed) {
  const LayerSpec bare =
      layerOf("batch_normalization", "{scale: false, center: false}", "unread", 8);
  LayerSpec out = dense("out", 10);
  out.from = "flatten";
  EXPECT_NE(failureOf(modelWith({flatten(), bare, out})).find("nothing reads layer 'unread'"),
            std::string::npos);
}

}  // namespace
}  // namespace dtf::model
