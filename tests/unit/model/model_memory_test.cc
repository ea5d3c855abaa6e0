#include "common/model/model_memory.h"

#include <gtest/gtest.h>

#include "tests/unit/model/models.h"

namespace dtf::model {
namespace {

KeptTensors keptOf(const ModelSpec& model, int64_t batch) {
  return keptTensors(buildTrainingGraph(model, batch));
}

// The fused step of softmax regression computes nothing but gradients.
TEST(KeptTensors, SoftmaxRegressionKeepsNothing) {
  const KeptTensors kept = keptOf(softmaxModel(), 50);
  EXPECT_EQ(kept.bytes, 0u);
  EXPECT_EQ(kept.largest_layer, "");
}

TEST(KeptTensors, AHiddenLayersOutputIsKeptOnce) {
  ModelSpec model = softmaxModel();
  model.layers = {flatten(), dense("hidden", 300, Activation::kRelu), dense("out", 10)};
  const KeptTensors kept = keptOf(model, 50);
  EXPECT_EQ(kept.bytes, 50u * 300 * 4) << "read by the relu's gradient and by the next layer's";
  EXPECT_EQ(kept.largest_layer, "hidden");
  EXPECT_EQ(kept.largest_bytes, kept.bytes);
}

// 26 x 26 positions pooled to 13 x 13, with the place of each maximum.
TEST(KeptTensors, WhatOneKernelWithItsPoolingDoesNotKeepIsNotCounted) {
  ModelSpec model = softmaxModel();
  model.layers = {layerOf("conv2d", "{filters: 8, kernel_size: 3, activation: relu}", "conv"),
                  layerOf("max_pooling2d", "{}", "pool"), flatten(), dense("out", 10)};
  const KeptTensors kept = keptOf(model, 2);
  EXPECT_EQ(kept.largest_layer, "pool");
  EXPECT_GE(kept.bytes, 2u * 13 * 13 * 8 * 4);
  EXPECT_LT(kept.bytes, 2u * 26 * 26 * 8 * 4);
}

TEST(KeptTensors, TheInnermostLayerIsNamed) {
  ModelSpec model = softmaxModel();
  model.layers = {
      layerOf("block",
              "{layers: [flatten, {dense: {units: 9, activation: tanh, name: a}}, {dense: "
              "{units: 700, activation: tanh, name: b}}, {dense: {units: 9, activation: tanh}}]}",
              "tower"),
      dense("out", 10)};
  const KeptTensors kept = keptOf(model, 4);
  EXPECT_EQ(kept.largest_layer, "tower/b");
  EXPECT_EQ(kept.largest_bytes, 4u * 700 * 4);
  EXPECT_EQ(kept.bytes, 4u * (700 + 9 + 9) * 4);
}

}  // namespace
}  // namespace dtf::model
