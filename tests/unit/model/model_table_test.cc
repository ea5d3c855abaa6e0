#include "common/model/model_table.h"

#include <gtest/gtest.h>

#include "tests/unit/model/models.h"

namespace dtf::model {
namespace {

const LayerRow& rowOf(const ModelTable& table, std::string_view path) {
  for (const LayerRow& row : table.layers)
    if (row.path == path) return row;
  ADD_FAILURE() << "no layer " << path;
  return table.layers.front();
}

TEST(ModelTable, CountsParametersAndOperationsOfEachLayer) {
  ModelSpec model = softmaxModel();
  model.layers = {layerOf("conv2d", "{filters: 32, kernel_size: 5, padding: same}", "conv"),
                  layerOf("max_pooling2d", "{}", "pool"), flatten(), dense("softmax", 10)};
  const ModelTable table = tableOf(model);
  ASSERT_EQ(table.layers.size(), 4u);
  const LayerRow& conv = rowOf(table, "conv");
  EXPECT_EQ(conv.output.str(), "[28, 28, 32]");
  EXPECT_EQ(conv.parameters, 5u * 5 * 32 + 32);
  const uint64_t outputs = 28 * 28 * 32;
  EXPECT_EQ(conv.flops, outputs * 2 * 25 + outputs) << "the product and the bias";
  EXPECT_EQ(rowOf(table, "pool").flops, outputs) << "each element is compared";
  EXPECT_EQ(rowOf(table, "flatten").flops, 0u);
  const LayerRow& softmax = rowOf(table, "softmax");
  EXPECT_EQ(softmax.parameters, 14u * 14 * 32 * 10 + 10);
  EXPECT_EQ(softmax.flops, 2u * 14 * 14 * 32 * 10 + 10);
  EXPECT_EQ(table.parameters, conv.parameters + softmax.parameters);
  EXPECT_EQ(table.flops, conv.flops + outputs + softmax.flops);
}

TEST(ModelTable, ALayerThatHoldsOthersCountsWhatIsItsOwn) {
  ModelSpec model = softmaxModel();
  model.input_shape = {4};
  model.layers = {layerOf("block",
                          "{repeat: 2, layers: [residual: {activation: relu, layers: "
                          "[dense: {units: 4, use_bias: false}]}]}",
                          "stage"),
                  dense("softmax", 10)};
  const ModelTable table = tableOf(model);
  EXPECT_EQ(rowOf(table, "stage").parameters, 0u);
  EXPECT_EQ(rowOf(table, "stage").flops, 0u);
  EXPECT_EQ(rowOf(table, "stage/0/residual").flops, 8u) << "the sum and the relu";
  EXPECT_EQ(rowOf(table, "stage/1/residual/dense").parameters, 16u);
  EXPECT_EQ(rowOf(table, "stage/1/residual/dense").depth, 2);
  EXPECT_EQ(table.parameters, 2u * 16 + 4 * 10 + 10);
  EXPECT_EQ(rowOf(table, "stage").text, "block stage: repeat=2");
}

TEST(ModelTable, ALoopCountsAsOftenAsItRuns) {
  ModelSpec model = softmaxModel();
  model.input_shape = {7, 3};
  model.layers = {layerOf("lstm", "{units: 5}", "lstm"), dense("softmax", 10)};
  const ModelTable table = tableOf(model);
  const uint64_t product = 2 * 3 * 20, biases = 20, gates = 20;  // once a step, before the loop
  // In the loop: the product, its sum with the others, four gates, tanh(c), and four of h and c.
  const uint64_t body = 2 * 5 * 20 + 20 + 4 * 5 + 5 + 4 * 5;
  EXPECT_EQ(rowOf(table, "lstm").flops, 7 * (product + biases + body) + gates);
}

TEST(ModelTable, IsATableForATerminal) {
  EXPECT_EQ(tableOf(softmaxModel()).str(),
            "layer    output         parameters        FLOP  settings\n"
            "input    [28, 28, 1]\n"
            "flatten  [784]                                  flatten\n"
            "softmax  [10]                 7850      15.7 k  dense softmax: units=10 "
            "activation=none use_bias=true kernel_initializer=glorot_uniform\n"
            "total                         7850      15.7 k  forwards, for one example\n");
}

}  // namespace
}  // namespace dtf::model
