#include "common/train/model_text.h"

#include <gtest/gtest.h>

namespace dtf::train {
namespace {

using cluster::LayerSpec;

cluster::ModelSpec model() {
  cluster::ModelSpec model;
  model.input_shape = {28, 28, 1};
  LayerSpec flatten;
  LayerSpec hidden;
  hidden.type = LayerSpec::Type::kDense;
  hidden.name = "hidden";
  hidden.dense = {16, cluster::Activation::kRelu, true, "zeros"};
  LayerSpec dropout;
  dropout.type = LayerSpec::Type::kDropout;
  dropout.dropout.rate = 0.5;
  LayerSpec logits = hidden;
  logits.name = "logits";
  logits.dense = {10, cluster::Activation::kNone, true, "zeros"};
  model.layers = {flatten, hidden, dropout, logits};
  return model;
}

std::string differenceAfter(void (*change)(cluster::ModelSpec&)) {
  cluster::ModelSpec other = model();
  change(other);
  return modelTextDifference(modelText(model()), modelText(other));
}

TEST(ModelText, SaysWhatIsComputed) {
  EXPECT_EQ(modelText(model()),
            "input [28, 28, 1]\n"
            "flatten\n"
            "dense hidden: units=16 activation=relu use_bias=true\n"
            "dense logits: units=10 activation=none use_bias=true\n"
            "loss softmax_cross_entropy");
}

TEST(ModelText, ADifferenceNamesBothSides) {
  EXPECT_EQ(
      differenceAfter([](auto& m) { m.layers[1].dense.activation = cluster::Activation::kTanh; }),
      "  the checkpoint has 'dense hidden: units=16 activation=relu use_bias=true'\n"
      "  this job has 'dense hidden: units=16 activation=tanh use_bias=true'");
  EXPECT_EQ(differenceAfter([](auto& m) { m.loss = cluster::Loss::kMse; }),
            "  the checkpoint has 'loss softmax_cross_entropy'\n  this job has 'loss mse'");
  EXPECT_EQ(differenceAfter([](auto& m) { m.layers.erase(m.layers.begin()); }),
            "  the checkpoint has 'flatten'");
  EXPECT_EQ(differenceAfter([](auto& m) { std::swap(m.layers[0], m.layers[1]); }),
            "  the layers are in another order");
}

TEST(ModelText, WhatLeavesTheMeaningOfTheWeightsMayChange) {
  EXPECT_EQ(differenceAfter([](auto& m) { m.layers[2].dropout.rate = 0.1; }), "");
  EXPECT_EQ(differenceAfter([](auto& m) { m.layers.erase(m.layers.begin() + 2); }), "");
  EXPECT_EQ(differenceAfter([](auto& m) { m.layers[1].dense.kernel_initializer = "x"; }), "");
  EXPECT_EQ(differenceAfter([](auto& m) { m.accuracy = true; }), "");
}

}  // namespace
}  // namespace dtf::train
