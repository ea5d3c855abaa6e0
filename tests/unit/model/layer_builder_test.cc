#include "common/model/layer_builder.h"

#include <gtest/gtest.h>

#include "common/yaml/error_at.h"
#include "tests/unit/model/layers/layer_test.h"

namespace dtf::model {
namespace {

// A layer that runs a test's function.
class TestLayer final : public Layer {
 public:
  using Build = std::function<graph::Output(LayerBuilder&, graph::Output)>;
  explicit TestLayer(Build build) : build_(std::move(build)) {}
  graph::Output build(LayerBuilder& layers, graph::Output x) const override {
    return build_(layers, x);
  }
  std::string meaning(std::string_view) const override { return "test"; }

 private:
  const Build build_;
};

LayerSpec layer(std::string name, TestLayer::Build build, std::string from = "") {
  return {"test",
          std::move(name),
          std::move(from),
          std::make_shared<const TestLayer>(std::move(build)),
          {"job.yaml", 8, 5}};
}
LayerSpec relu(std::string name, std::string from = "") {
  return layer(
      std::move(name), [](LayerBuilder& layers, graph::Output x) { return layers.ops().relu(x); },
      std::move(from));
}

TEST(LayerBuilder, EachLayerReadsTheOneBeforeOrTheOneThatItNames) {
  const BuiltLayer built({relu("a"), relu("b"), relu("c", "a")}, {4});
  EXPECT_EQ(built.node("b/Relu").inputs[0].node, built.node("a/Relu").id);
  EXPECT_EQ(built.node("c/Relu").inputs[0].node, built.node("a/Relu").id);
  ASSERT_EQ(built.model.layers.size(), 3u);
  EXPECT_EQ(built.model.layers[1].output.node, built.node("b/Relu").id);
}

TEST(LayerBuilder, ANameThatIsNotThereIsAnErrorAtTheLayer) {
  EXPECT_EQ(buildFailure({relu("first"), relu("b", "frist")}, {4}),
            "job.yaml:8:5: error: layer 'b' names the layer 'frist', and there is none before it - "
            "did you mean 'first'?");
  EXPECT_EQ(buildFailure({relu("a", "b"), relu("b")}, {4}),
            "job.yaml:8:5: error: layer 'a' names the layer 'b', and there is none before it");
}

TEST(LayerBuilder, WhatTheGraphRefusesIsSaidOfTheLayer) {
  const std::string failure = buildFailure(
      {layer("flat",
             [](LayerBuilder& layers, graph::Output x) { return layers.ops().reshape(x, {7}); })},
      {4});
  EXPECT_EQ(failure.find("job.yaml:8:5: error: layer 'flat': "), 0u) << failure;
}

TEST(LayerBuilder, VariablesAreNamedAfterTheirLayer) {
  const LayerSpec* last = nullptr;
  const std::vector<LayerSpec> layers = {
      layer("dense",
            [](LayerBuilder& builder, graph::Output x) {
              builder.variable("weights", {4, 2}, "zeros");
              return x;
            }),
      layer("after", [&last](LayerBuilder& builder, graph::Output x) {
        last = builder.lastWithVariables();
        return x;
      })};
  const BuiltLayer built(layers, {4});
  EXPECT_EQ(built.variables(), "dense/weights [4, 2]");
  EXPECT_EQ(last, &layers[0]);
}

TEST(LayerBuilder, AMovingAverageMovesToItsStatistic) {
  const BuiltLayer built({layer("norm",
                                [](LayerBuilder& layers, graph::Output x) {
                                  const graph::Output average =
                                      layers.movingAverage("mean", {}, "zeros", 0.75);
                                  layers.setStatistic(average, layers.ops().mean(x));
                                  return x;
                                })},
                         {4});
  ASSERT_EQ(built.model.variables.size(), 1u);
  const ModelVariable& variable = built.model.variables[0];
  EXPECT_EQ(variable.momentum, 0.75);
  ASSERT_TRUE(variable.gradient);
  EXPECT_EQ(variable.gradient->node, built.node("norm/Mean").id);
}

TEST(LayerBuilder, AnOrthogonalValueThatTakesLongToDrawIsRefused) {
  const auto wide = [](int64_t side) {
    return layer("wide", [side](LayerBuilder& layers, graph::Output x) {
      layers.variable("weights", {side, side}, "orthogonal");
      return x;
    });
  };
  EXPECT_EQ(buildFailure({wide(4600)}, {4}), "no error");
  EXPECT_NE(buildFailure({wide(9000)}, {4}).find("an orthogonal initial value of [9000, 9000]"),
            std::string::npos);
}

TEST(LayerBuilder, LayersThatRepeatWithoutEndAreRefused) {
  const LayerSpec same = layer("s", [](LayerBuilder&, graph::Output x) { return x; });
  EXPECT_EQ(buildFailure(std::vector<LayerSpec>(10'000, same), {4}), "no error");
  EXPECT_NE(buildFailure(std::vector<LayerSpec>(10'001, same), {4})
                .find("the model has more than 10000 layers"),
            std::string::npos);
}

}  // namespace
}  // namespace dtf::model
