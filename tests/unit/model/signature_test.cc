#include "common/model/signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "common/base/error.h"
#include "tests/unit/graph/reference_interpreter.h"
#include "tests/unit/model/models.h"

namespace dtf::model {
namespace {

using graph::testing::evaluate;
using graph::testing::Feeds;
using graph::testing::Values;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Role = SignatureTensor::Role;

std::vector<std::string> namesOf(const Signature& signature, Role role) {
  std::vector<std::string> names;
  for (const SignatureTensor& each : signature.tensors)
    if (each.role == role) names.push_back(each.name);
  return names;
}

graph::Output tensorOf(const Signature& signature, const std::string& name) {
  for (const SignatureTensor& each : signature.tensors)
    if (each.name == name) return each.tensor;
  ADD_FAILURE() << name;
  return {};
}

ModelSpec twoUnits() {
  ModelSpec model;
  model.input_shape = {2};
  model.input_dtype = DType::kFloat32;
  model.layers = {dense("line", 2)};
  model.accuracy = true;
  return model;
}

Feeds feedsOf(const Signature& signature) {
  return {{tensorOf(signature, "features"), {1, 2}},
          {tensorOf(signature, "line/weights"), {0, 1, 0, 1}},
          {tensorOf(signature, "line/biases"), {0, 0}}};
}

TEST(Signature, CategoriesAreInputsByTheirNames) {
  ModelSpec model = twoUnits();
  model.categories = {{"user", 1}, {"item", 1}};
  EXPECT_THAT(namesOf(buildSignature(model, "predict", 1), Role::kInput),
              ElementsAre("features", "categories/user", "categories/item"));
  EXPECT_THAT(namesOf(buildSignature(model, "train", 1), Role::kInput),
              ElementsAre("features", "categories/user", "categories/item", "labels"));
  model.input_shape = {1};
  model.input_dtype = DType::kInt32;
  model.features_are_categories = true;
  model.layers = {layerOf("embedding", "{categories: user, input_dim: 3, output_dim: 2}", "u"),
                  flatten(), dense("line", 2)};
  EXPECT_THAT(namesOf(buildSignature(model, "evaluate", 1), Role::kInput),
              ElementsAre("categories/user", "categories/item", "labels"));
}

TEST(Signature, PredictGivesProbabilitiesAndLogits) {
  const Signature signature = buildSignature(twoUnits(), "predict", 1);
  EXPECT_THAT(namesOf(signature, Role::kInput), ElementsAre("features"));
  EXPECT_THAT(namesOf(signature, Role::kOutput), ElementsAre("outputs", "logits"));
  EXPECT_THAT(namesOf(signature, Role::kVariable), ElementsAre("line/weights", "line/biases"));
  const Feeds feeds = feedsOf(signature);
  EXPECT_EQ(evaluate(signature.graph, feeds, tensorOf(signature, "logits")), (Values{0, 3}));
  const Values outputs = evaluate(signature.graph, feeds, tensorOf(signature, "outputs"));
  EXPECT_NEAR(outputs[1], 1 / (1 + std::exp(-3.0)), 1e-12);
}

TEST(Signature, EvaluateGivesLossAndAccuracy) {
  const Signature signature = buildSignature(twoUnits(), "evaluate", 1);
  EXPECT_THAT(namesOf(signature, Role::kInput), ElementsAre("features", "labels"));
  EXPECT_THAT(namesOf(signature, Role::kOutput), ElementsAre("loss", "logits", "accuracy"));
  Feeds feeds = feedsOf(signature);
  feeds[tensorOf(signature, "labels")] = {1};
  EXPECT_NEAR(evaluate(signature.graph, feeds, tensorOf(signature, "loss"))[0],
              std::log1p(std::exp(-3.0)), 1e-12);
  EXPECT_EQ(evaluate(signature.graph, feeds, tensorOf(signature, "accuracy")), (Values{1}));
}

TEST(Signature, TrainGivesEachVariablesGradientAndUpdatesNothing) {
  const Signature signature = buildSignature(twoUnits(), "train", 1);
  EXPECT_THAT(namesOf(signature, Role::kOutput),
              ElementsAre("loss", "gradient/line/weights", "gradient/line/biases"));
  for (const graph::Node& node : signature.graph.nodes())
    EXPECT_FALSE(graph::appliesGradient(node)) << node.name;
  Feeds feeds = feedsOf(signature);
  feeds[tensorOf(signature, "labels")] = {1};
  const Values gradient =
      evaluate(signature.graph, feeds, tensorOf(signature, "gradient/line/biases"));
  EXPECT_NEAR(gradient[0], 1 / (1 + std::exp(3.0)), 1e-12);
  EXPECT_NEAR(gradient[0] + gradient[1], 0, 1e-12);
}

TEST(Signature, TrainGivesTheNextValueOfAMovingAverage) {
  ModelSpec model = twoUnits();
  model.layers = {
      layerOf("batch_normalization", "{momentum: 0.75, center: false, scale: false}", "norm"),
      dense("line", 2)};
  const Signature signature = buildSignature(model, "train", 2);
  EXPECT_THAT(namesOf(signature, Role::kOutput), ::testing::Contains("next/norm/moving_mean"));
  Feeds feeds = feedsOf(signature);
  feeds[tensorOf(signature, "features")] = {1, 2, 3, 6};
  feeds[tensorOf(signature, "norm/moving_mean")] = {8, 16};
  feeds[tensorOf(signature, "norm/moving_variance")] = {1, 1};
  feeds[tensorOf(signature, "labels")] = {1, 0};
  EXPECT_EQ(evaluate(signature.graph, feeds, tensorOf(signature, "next/norm/moving_mean")),
            (Values{6.5, 13}));  // 0.75 of the old value, and of 2 and 4
}

TEST(Signature, TrainReadsAKeyWhereMasksAreDrawn) {
  ModelSpec model = twoUnits();
  model.layers = {dropout("drop", 0.5), dense("line", 2)};
  EXPECT_THAT(namesOf(buildSignature(model, "train", 1), Role::kInput),
              ElementsAre("features", "labels", "random_key"));
  EXPECT_THAT(namesOf(buildSignature(model, "evaluate", 1), Role::kInput),
              ElementsAre("features", "labels"));
}

TEST(Signature, AnUnknownNameIsToldTheNearest) {
  try {
    buildSignature(twoUnits(), "predikt", 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_THAT(error.message(), HasSubstr("no signature 'predikt' - did you mean 'predict'?"));
  }
}

}  // namespace
}  // namespace dtf::model
