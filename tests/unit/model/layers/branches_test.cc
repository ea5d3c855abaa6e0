#include <gtest/gtest.h>

#include "tests/unit/model/layers/layer_test.h"

namespace dtf::model {
namespace {

constexpr const char* kConv =
    "conv2d: {filters: 3, kernel_size: 3, padding: same, use_bias: false}";

LayerSpec named(LayerSpec layer, std::string from) {
  layer.from = std::move(from);
  return layer;
}

TEST(BlockLayer, RepeatsItsLayersWithVariablesOfTheirOwn) {
  const BuiltLayer built(
      {layerOf("block", std::string("{repeat: 2, layers: [") + kConv + ", relu]}", "stage")},
      {4, 4, 3});
  EXPECT_EQ(built.variables(),
            "stage/0/conv2d/weights [3, 3, 3, 3], stage/1/conv2d/weights [3, 3, 3, 3]");
  EXPECT_EQ(
      BuiltLayer({layerOf("block", std::string("{layers: [") + kConv + "]}", "stage")}, {4, 4, 3})
          .variables(),
      "stage/conv2d/weights [3, 3, 3, 3]");
}

TEST(ResidualLayer, AddsItsInput) {
  const BuiltLayer built(
      {layerOf("residual", std::string("{activation: relu, layers: [") + kConv + "]}", "r")},
      {4, 4, 3});
  const graph::Node& relu = built.model.graph.node(built.output.node);
  EXPECT_EQ(relu.op, "Relu");
  const graph::Node& sum = built.model.graph.node(relu.inputs[0].node);
  EXPECT_EQ(sum.op, "Add");
  EXPECT_EQ(sum.inputs[1], built.input);
}

TEST(ResidualLayer, ItsShortcutMayHaveLayers) {
  const BuiltLayer built(
      {layerOf(
          "residual",
          "{layers: [conv2d: {filters: 6, kernel_size: 3, strides: 2, padding: same}], shortcut: "
          "[conv2d: {filters: 6, kernel_size: 1, strides: 2}]}",
          "r")},
      {4, 4, 3});
  EXPECT_EQ(built.shape.str(), "[2, 2, 6]");
  EXPECT_EQ(built.variables(),
            "r/conv2d/weights [3, 3, 3, 6], r/conv2d/biases [6], r/shortcut/conv2d/weights [1, 1, "
            "3, 6], r/shortcut/conv2d/biases [6]");
}

TEST(ResidualLayer, SaysWhichShapesDiffer) {
  EXPECT_EQ(
      buildFailure(
          {layerOf("residual", "{layers: [conv2d: {filters: 6, kernel_size: 3}]}", "r", 9)},
          {4, 4, 3}),
      "job.yaml:9:7: error: layer 'r': its layers give [2, 2, 6], its shortcut [4, 4, 3]: "
      "both must be alike; a conv2d with kernel_size 1 as 'shortcut' changes channels and stride");
}

TEST(MultiplyLayer, MultipliesElementByElement) {
  const BuiltLayer built(
      {dense("a", 3), named(dense("b", 3), "a"), layerOf("multiply", "{with: [a]}", "product")},
      {5});
  const graph::Node& product = built.model.graph.node(built.output.node);
  EXPECT_EQ(product.op, "Mul");
  EXPECT_EQ(built.shape.str(), "[3]");
  EXPECT_EQ(
      buildFailure({dense("a", 3), dense("b", 4), layerOf("multiply", "{with: [a]}", "product", 9)},
                   {5}),
      "job.yaml:9:7: error: layer 'product' multiplies 'a', an output of [3], by one of [4]");
}

TEST(Branches, ALayerMayReadAnyBeforeIt) {
  const std::vector<LayerSpec> layers = {dense("a", 3), dense("b", 3), named(dense("c", 3), "a"),
                                         layerOf("add", "{with: [b, a]}", "sum")};
  const BuiltLayer built(layers, {5});
  EXPECT_EQ(built.node("c/MatMul").inputs[0].node, built.node("a/BiasAdd").id);
  const graph::Node& last = built.model.graph.node(built.output.node);
  EXPECT_EQ(last.inputs[1].node, built.node("a/BiasAdd").id);
  EXPECT_EQ(built.model.graph.node(last.inputs[0].node).inputs[1].node, built.node("b/BiasAdd").id);
}

TEST(Branches, ABlockSeesWhatStandsBeforeIt) {
  const BuiltLayer built(
      {dense("a", 3), dense("b", 3), layerOf("block", "{layers: [add: {with: [a]}]}", "stage")},
      {5});
  EXPECT_EQ(built.node("stage/add/Add").inputs[1].node, built.node("a/BiasAdd").id);
}

TEST(Branches, ConcatPutsChannelsSideBySide) {
  const BuiltLayer built({layerOf("conv2d", "{filters: 3, kernel_size: 1}", "a"),
                          layerOf("conv2d", "{filters: 5, kernel_size: 1}", "b"),
                          layerOf("concatenate", "{with: [a]}", "both")},
                         {4, 4, 2});
  EXPECT_EQ(built.shape.str(), "[4, 4, 8]");
  EXPECT_EQ(buildFailure({layerOf("conv2d", "{filters: 3, kernel_size: 1}", "a"),
                          layerOf("conv2d", "{filters: 3, kernel_size: 3}", "b"),
                          layerOf("concatenate", "{with: [a]}", "both", 4)},
                         {4, 4, 2}),
            "job.yaml:4:7: error: layer 'both' puts 'a', an output of [4, 4, 3], behind one of [2, "
            "2, 3]: all but their channels must be alike");
}

TEST(Branches, NameWhatIsNotThere) {
  EXPECT_EQ(buildFailure({dense("stem", 3), layerOf("add", "{with: [stm]}", "sum", 4)}, {5}),
            "job.yaml:4:7: error: layer 'sum' names the layer 'stm', and there is none before it - "
            "did you mean 'stem'?");
  EXPECT_EQ(buildFailure({layerOf("block", "{layers: [dense: {units: 2, name: inner}]}", "stage"),
                          layerOf("add", "{with: [inner]}", "sum", 4)},
                         {5})
                .find("job.yaml:4:7: error: layer 'sum' names the layer 'inner'"),
            0u)
      << "what a block holds is its own";
  EXPECT_EQ(
      buildFailure({dense("a", 3), dense("b", 4), layerOf("add", "{with: [a]}", "sum", 4)}, {5}),
      "job.yaml:4:7: error: layer 'sum' adds 'a', an output of [3], to one of [4]");
}

TEST(Branches, JoinFromOneTo256) {
  for (const char* type : {"add", "multiply", "concatenate"}) {
    EXPECT_NE(readFailure(type, "{with: []}").find("'with' must have from 1 to 256 names, got 0"),
              std::string::npos);
    std::string many = "a";
    for (int i = 0; i < 256; ++i) many += ", a";
    EXPECT_NE(readFailure(type, "{with: [" + many + "]}").find("got 257"), std::string::npos);
  }
}

TEST(Branches, WhichLayerReadsWhichIsPartOfTheirMeaning) {
  const LayerSpec block =
      layerOf("block", "{layers: [dense: {units: 3, name: a}, relu: {name: b, from: a}]}", "stage");
  EXPECT_EQ(block.layer->meaning("stage"),
            "block stage: repeat=1\n"
            "  dense a: units=3 activation=none use_bias=true\n"
            "  relu name=b from=a");
}

TEST(Branches, WhatTheGraphRefusesIsSaidOfTheInnermostLayer) {
  EXPECT_EQ(buildFailure(
                {layerOf("block", "{layers: [max_pooling2d: {pool_size: 2, padding: 5, name: p}]}",
                         "stage", 4)},
                {8, 8, 3})
                .find("settings:1:11: error: layer 'p': "),
            0u);
}

TEST(Branches, RepetitionIsBounded) {
  const std::string inner = "block: {repeat: 1000, layers: [relu]}";
  const std::string failure =
      buildFailure({layerOf("block", "{repeat: 1000, layers: [" + inner + "]}", "b", 4)}, {5});
  EXPECT_NE(failure.find("the model has more than 10000 layers, repeated ones counted"),
            std::string::npos)
      << failure;
}

TEST(Branches, TheirMeaningHoldsThatOfTheirLayers) {
  const LayerSpec block =
      layerOf("block",
              "{repeat: 3, layers: [relu, residual: {layers: [tanh, dropout: {rate: 0.5}], "
              "shortcut: [sigmoid]}]}",
              "stage");
  EXPECT_EQ(block.layer->meaning("stage"),
            "block stage: repeat=3\n"
            "  relu\n"
            "  residual residual: activation=none\n"
            "    tanh\n"
            "  shortcut\n"
            "    sigmoid");
  EXPECT_NE(block.layer->text("stage").find("dropout rate=0.5"), std::string::npos);
  EXPECT_TRUE(block.layer->drawsRandomNumbers());
}

// In `both`, behind b, `with: [a, b]` names b a second time.
TEST(BranchLayers, ALayerIsTakenOnce) {
  for (const char* type : {"add", "multiply", "concatenate"}) {
    EXPECT_NE(buildFailure({dense("a", 3), named(dense("b", 3), "a"),
                            layerOf(type, "{with: [a, b]}", "both", 9)},
                           {5})
                  .find("layer 'both' takes 'b' twice: it is the layer's input already"),
              std::string::npos)
        << type;
    EXPECT_NE(buildFailure({dense("a", 3), dense("b", 3), dense("c", 3),
                            layerOf(type, "{with: [a, a]}", "both", 9)},
                           {5})
                  .find("layer 'both' takes 'a' twice: 'with' names it so often"),
              std::string::npos)
        << type;
  }
}

}  // namespace
}  // namespace dtf::model
