#include "common/model/model_text.h"

#include <gtest/gtest.h>

#include "tests/unit/model/models.h"

namespace dtf::model {
namespace {

ModelSpec exampleModel() {
  ModelSpec model;
  model.input_shape = {28, 28, 1};
  model.layers = {flatten(), dense("hidden", 16, Activation::kRelu, 0, "kernel_initializer: zeros"),
                  dropout("dropout", 0.5), dense("logits", 10)};
  return model;
}

std::string differenceAfter(void (*change)(ModelSpec&)) {
  ModelSpec other = exampleModel();
  change(other);
  return modelTextDifference(modelText(exampleModel()), modelText(other));
}

TEST(ModelText, SaysWhatIsComputed) {
  EXPECT_EQ(modelText(exampleModel()),
            "input [28, 28, 1]\n"
            "flatten\n"
            "dense hidden: units=16 activation=relu use_bias=true\n"
            "dense logits: units=10 activation=none use_bias=true\n"
            "loss sparse_categorical_crossentropy");
}

TEST(ModelText, SaysWhatIsFedWhereThatIsNotPixelsAndClasses) {
  EXPECT_EQ(differenceAfter([](auto& m) { m.labels_dtype = DType::kInt32; }), "")
      << "classes are classes";
  EXPECT_EQ(differenceAfter([](auto& m) { m.input_dtype = DType::kFloat32; }),
            "  the checkpoint has 'input [28, 28, 1]'\n"
            "  this job has 'input float32 [28, 28, 1]'");
  EXPECT_EQ(differenceAfter([](auto& m) { m.labels_dtype = DType::kFloat32; }),
            "  the checkpoint has 'loss sparse_categorical_crossentropy'\n"
            "  this job has 'loss sparse_categorical_crossentropy of targets'");
}

TEST(ModelText, TasksMustAgreeInAllSettings) {
  const ModelSpec model = exampleModel();
  EXPECT_EQ(layerText(model.layers[1]),
            "dense hidden: units=16 activation=relu use_bias=true kernel_initializer=zeros");
  EXPECT_EQ(layerText(model.layers[2]), "dropout rate=0.5");
}

TEST(ModelText, WhichLayerReadsWhichIsPartOfTheMeaning) {
  EXPECT_EQ(differenceAfter([](auto& m) { m.layers[3].from = "hidden"; }),
            "  the checkpoint has 'dense logits: units=10 activation=none use_bias=true'\n"
            "  this job has 'dense logits: units=10 activation=none use_bias=true from=hidden'");
  EXPECT_EQ(differenceAfter([](auto& m) { m.layers[0].name = "pixels"; }),
            "  the checkpoint has 'flatten'\n  this job has 'flatten name=pixels'");
  EXPECT_EQ(differenceAfter([](auto& m) { m.layers[2].from = "hidden"; }),
            "  this job has 'dropout from=hidden'");
}

TEST(ModelText, ADifferenceNamesBothSides) {
  EXPECT_EQ(differenceAfter([](auto& m) { m.layers[1] = dense("hidden", 16, Activation::kTanh); }),
            "  the checkpoint has 'dense hidden: units=16 activation=relu use_bias=true'\n"
            "  this job has 'dense hidden: units=16 activation=tanh use_bias=true'");
  EXPECT_EQ(differenceAfter([](auto& m) { m.loss.kind = Loss::kMse; }),
            "  the checkpoint has 'loss sparse_categorical_crossentropy'\n  this job has 'loss "
            "mean_squared_error'");
  EXPECT_EQ(differenceAfter([](auto& m) { m.layers.erase(m.layers.begin()); }),
            "  the checkpoint has 'flatten'");
  EXPECT_EQ(differenceAfter([](auto& m) { std::swap(m.layers[0], m.layers[1]); }),
            "  the layers are in another order");
}

TEST(ModelText, WhatLeavesTheMeaningOfTheWeightsMayChange) {
  EXPECT_EQ(differenceAfter([](auto& m) { m.layers[2] = dropout("dropout", 0.1); }), "");
  EXPECT_EQ(differenceAfter([](auto& m) { m.layers.erase(m.layers.begin() + 2); }), "");
  EXPECT_EQ(differenceAfter([](auto& m) { m.layers[1] = dense("hidden", 16, Activation::kRelu); }),
            "");
  EXPECT_EQ(differenceAfter([](auto& m) { m.accuracy = true; }), "");
}

}  // namespace
}  // namespace dtf::model
