#include "common/model/layers/kernel_keys.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/unit/graph/reference_interpreter.h"
#include "tests/unit/model/layers/layer_test.h"

namespace dtf::model {
namespace {

const std::vector<double> kWeights = {0.5, -1, 2, 0.25, 3, -0.75};

struct LossAndGradient {
  double loss = 0;
  std::vector<double> gradient;  // of the weights
};

// Trains on two examples of two pixels, in double precision.
LossAndGradient trained(const std::string& settings) {
  ModelSpec spec = softmaxModel();
  spec.input_shape = {2};
  spec.layers = {dense("out", 3, Activation::kNone, 0, "use_bias: false\n" + settings)};
  const ModelGraph model = buildTrainingGraph(spec, 2);
  const std::vector<graph::Output> wanted = {model.loss, *model.variables[0].gradient};
  const auto found = graph::testing::evaluate(model.graph,
                                              {{model.features, {10, 200, 130, 40}},
                                               {model.labels, {1, 2}},
                                               {model.variables[0].value, kWeights}},
                                              wanted);
  return {found[0][0], found[1]};
}

TEST(KernelKeys, PenaltiesAreAddedToTheLossAsKerasDoes) {
  const LossAndGradient plain = trained("");
  const double l1 = 0.5, l2 = 0.125;
  double size = 0, squares = 0;
  for (const double w : kWeights) {
    size += std::abs(w);
    squares += w * w;
  }
  const LossAndGradient both = trained("kernel_regularizer: {l1: 0.5, l2: 0.125}");
  EXPECT_NEAR(both.loss, plain.loss + l1 * size + l2 * squares, 1e-12);
  for (size_t i = 0; i < kWeights.size(); ++i)
    EXPECT_NEAR(both.gradient[i],
                plain.gradient[i] + std::copysign(l1, kWeights[i]) + 2 * l2 * kWeights[i], 1e-12);
  EXPECT_NEAR(trained("kernel_regularizer: {l2: 0.125}").loss, plain.loss + l2 * squares, 1e-12);
  EXPECT_EQ(trained("kernel_regularizer: {l1: 0}").loss, plain.loss);
}

TEST(KernelKeys, EvaluationsSeeThePenaltyToo) {
  ModelSpec spec = softmaxModel();
  spec.layers = {flatten(),
                 dense("out", 10, Activation::kNone, 0, "kernel_regularizer: {l2: 0.1}")};
  const ModelGraph model = buildEvaluationGraph(spec, 4);
  EXPECT_EQ(model.graph.node(model.loss.node).op, "Add");
}

TEST(KernelKeys, EveryLayerWithAKernelHasThem) {
  const std::string keys =
      "{kernel_size: 3, use_bias: false, activation: tanh, depthwise_initializer: zeros, "
      "depthwise_regularizer: {l1: 0.5}}";
  const LayerSpec depthwise = layerOf("depthwise_conv2d", keys, "conv");
  EXPECT_EQ(depthwise.layer->text("conv"),
            "depthwise_conv2d conv: depth_multiplier=1 kernel_size=3x3 strides=1x1 padding=valid "
            "activation=tanh use_bias=false depthwise_initializer=zeros l1=0.5");
  EXPECT_EQ(depthwise.layer->meaning("conv").find("l1"), std::string::npos)
      << "a job may go on with another";
  const LayerSpec conv =
      layerOf("conv2d", "{filters: 2, kernel_size: 3, kernel_regularizer: {l2: 0.25}}", "conv");
  EXPECT_NE(conv.layer->text("conv").find(" l2=0.25"), std::string::npos);
}

TEST(KernelKeys, AnOrthogonalValueThatTakesAnHourIsRefused) {
  const std::string orthogonal = "kernel_initializer: orthogonal";
  EXPECT_EQ(buildFailure({dense("d", 4000, Activation::kNone, 0, orthogonal)}, {4000}), "no error");
  EXPECT_EQ(buildFailure({dense("d", 10, Activation::kNone, 0, orthogonal)}, {1'000'000}),
            "no error");
  EXPECT_NE(buildFailure({dense("d", 10'000, Activation::kNone, 0, orthogonal)}, {10'000})
                .find("layer 'd': an orthogonal initial value of [10000, 10000] would take long"),
            std::string::npos);
}

TEST(KernelKeys, RefusesAPenaltyBelowZero) {
  EXPECT_THROW(layerOf("dense", "{units: 3, kernel_regularizer: {l2: -1}}", "d"), Error);
  EXPECT_THROW(layerOf("dense", "{units: 3, kernel_regularizer: {l3: 1}}", "d"), Error);
}

}  // namespace
}  // namespace dtf::model
