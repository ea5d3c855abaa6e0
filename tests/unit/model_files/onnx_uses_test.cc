#include "common/model_files/onnx_uses.h"

#include <gtest/gtest.h>

namespace dtf::model_files {
namespace {

using Turn = OnnxUse::Turn;

// A short form of a model: nodes in a row, each with its first output named `output`.
struct Model {
  std::vector<OnnxNode> nodes;
  std::set<std::string> weights = {"w", "b", "c"};

  OnnxNode& add(const char* op, std::vector<std::string> inputs, const char* output) {
    OnnxNode node;
    node.op = op;
    node.inputs = std::move(inputs);
    node.outputs = {output};
    nodes.push_back(std::move(node));
    return nodes.back();
  }
  OnnxUse useOf(const std::string& weight) const {
    const auto uses = onnxUses(nodes, weights, {"x"});
    const auto found = uses.find(weight);
    return found == uses.end() ? OnnxUse{} : found->second;
  }
};

TEST(OnnxUses, RowsBehindAFlattenedImageGoByChannelFirst) {
  for (const char* const flatten : {"Flatten", "Reshape"}) {
    Model model;
    model.add("Conv", {"x", "c"}, "1");
    model.add("Relu", {"1"}, "2");
    model.add("MaxPool", {"2"}, "3");
    model.add(flatten, {"3", "shape"}, "4");
    model.add("Dropout", {"4"}, "5");
    model.add("Gemm", {"5", "w", "b"}, "6").trans_b = true;
    EXPECT_EQ(model.useOf("w"),
              (OnnxUse{.turn = Turn::kTransposed, .layout = WeightLayout::kChannelRows}));
    EXPECT_EQ(model.useOf("c").turn, Turn::kFilter);
    EXPECT_EQ(model.useOf("b").layout, WeightLayout::kChannelRows);
  }
}

// dtf and TensorFlow write such files: the input of the first dense layer is transposed.
TEST(OnnxUses, ATransposeBeforeThemPutsChannelsLast) {
  Model model;
  model.add("Transpose", {"x"}, "1").perm = {0, 3, 1, 2};
  model.add("Conv", {"1", "c"}, "2");
  model.add("Transpose", {"2"}, "3").perm = {0, 2, 3, 1};
  model.add("Reshape", {"3", "shape"}, "4");
  model.add("Gemm", {"4", "w"}, "5");
  EXPECT_EQ(model.useOf("w"), (OnnxUse{.layout = WeightLayout::kDtf}));
  model.nodes[2].perm = {0, 1, 3, 2};
  EXPECT_EQ(model.useOf("w").layout, WeightLayout::kUnknownRows);
}

TEST(OnnxUses, RowsOfTheInputAreThoseThatTheInputHas) {
  Model model;
  model.add("Flatten", {"x"}, "1");
  model.add("MatMul", {"1", "w"}, "2");
  EXPECT_EQ(model.useOf("w").layout, WeightLayout::kInputRows);
}

TEST(OnnxUses, WhatBranchesAgreeOnIsKnown) {
  Model model;
  model.add("Conv", {"x", "c"}, "1");
  model.add("Conv", {"1", "c"}, "2");
  model.add("Add", {"1", "2"}, "3");
  model.add("Flatten", {"3"}, "4");
  model.add("Gemm", {"4", "w"}, "5");
  EXPECT_EQ(model.useOf("w").layout, WeightLayout::kChannelRows);
  model.add("Add", {"4", "5"}, "6");
  model.add("Gemm", {"6", "b"}, "7");
  EXPECT_EQ(model.useOf("b").layout, WeightLayout::kUnknownRows)
      << "an image's rows and a dense layer's";
}

TEST(OnnxUses, ANumberedMatrixHasTheNameOfItsBias) {
  Model model;
  model.weights = {"onnx::MatMul_7", "fc.bias", "t", "u"};
  model.add("MatMul", {"x", "onnx::MatMul_7"}, "1");
  model.add("Add", {"fc.bias", "1"}, "2");
  EXPECT_EQ(model.useOf("onnx::MatMul_7").name, "fc.weight");
  model.add("Transpose", {"t"}, "3").perm = {1, 0};
  model.add("MatMul", {"2", "3"}, "4");
  EXPECT_EQ(model.useOf("t").turn, Turn::kTransposed);
  EXPECT_EQ(model.useOf("u").layout, WeightLayout::kUnknown);
}

TEST(OnnxUses, WhatNoDenseLayerDoesIsRefused) {
  Model scaled;
  scaled.add("Gemm", {"x", "w"}, "1").alpha = 2;
  EXPECT_NE(scaled.useOf("w").refused, "");
  Model shared;
  shared.add("Gemm", {"x", "w"}, "1");
  shared.add("Gemm", {"1", "w"}, "2").trans_b = true;
  EXPECT_EQ(shared.useOf("w").refused, "the model uses it in two ways");
}

}  // namespace
}  // namespace dtf::model_files
