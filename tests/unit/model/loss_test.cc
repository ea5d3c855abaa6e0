#include "common/model/loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/base/error.h"
#include "common/graph/op_def.h"
#include "tests/unit/graph/reference_interpreter.h"

namespace dtf::model {
namespace {

LossSpec lossOf(const std::string& text) {
  yaml::Report report;
  const std::optional<yaml::YamlNode> node =
      yaml::parseYaml(text, report.addFile("loss.yaml", text), report);
  report.throwIfAny();
  const LossSpec loss = readLoss(*node, report);
  report.throwIfAny();
  return loss;
}

TEST(Loss, IsNamedAsTheFileDoes) {
  EXPECT_EQ(nameOf(Loss::kSoftmaxCrossEntropy), "sparse_categorical_crossentropy");
  EXPECT_EQ(nameOf(Loss::kMse), "mean_squared_error");
  EXPECT_EQ(nameOf(Loss::kSigmoidCrossEntropy), "binary_crossentropy");
  EXPECT_EQ(nameOf(Loss::kMae), "mean_absolute_error");
  EXPECT_EQ(nameOf(Loss::kHuber), "huber");
  EXPECT_EQ(nameOf(Loss::kHinge), "hinge");
}

TEST(Loss, IsReadWithItsSettings) {
  EXPECT_EQ(lossOf("mse"), (LossSpec{Loss::kMse}));
  EXPECT_EQ(lossOf("sparse_categorical_crossentropy: {label_smoothing: 0.1}"),
            (LossSpec{Loss::kSoftmaxCrossEntropy, 0.1}));
  EXPECT_EQ(lossOf("huber: {delta: 2}"), (LossSpec{Loss::kHuber, 0, 2}));
  EXPECT_EQ(lossOf("huber: {delta: 2}").text(), "huber delta=2");
  EXPECT_EQ(lossOf("sparse_categorical_crossentropy: {label_smoothing: 0.1}").text(),
            "sparse_categorical_crossentropy label_smoothing=0.1");
  EXPECT_EQ(lossOf("mse").text(), "mean_squared_error");
}

TEST(Loss, WeightsAreRead) {
  LossSpec weighted{Loss::kSoftmaxCrossEntropy};
  weighted.class_weights = {1, 2.5, 0};
  EXPECT_EQ(lossOf("sparse_categorical_crossentropy: {class_weights: [1, 2.5, 0]}"), weighted);
  EXPECT_EQ(weighted.text(), "sparse_categorical_crossentropy class_weights=[1, 2.5, 0]");
  EXPECT_EQ(lossOf("hinge: {positive_weight: 3}").text(), "hinge positive_weight=3");
  EXPECT_EQ(lossOf("binary_crossentropy: {positive_weight: 3}").positive_weight, 3);
}

TEST(Loss, RefusesTheSettingsOfAnother) {
  for (const char* text : {"mse: {positive_weight: 2}", "hinge: {class_weights: [1, 2]}",
                           "sparse_categorical_crossentropy: {class_weights: []}",
                           "sparse_categorical_crossentropy: {class_weights: [0, 0]}",
                           "sparse_categorical_crossentropy: {class_weights: [-1, 2]}",
                           "mse: {delta: 1}", "huber: {label_smoothing: 0.1}", "hinges",
                           "sparse_categorical_crossentropy: {label_smoothing: 1}"})
    EXPECT_THROW(lossOf(text), Error) << text;
}

// The terms of one example with two outputs (2, -1) and these targets.
std::vector<double> termsOfTargets(const LossSpec& loss, std::vector<double> targets) {
  graph::Graph graph(graph::standardOps());
  graph::Builder ops(graph);
  const graph::Output output = ops.placeholder("output", DType::kFloat32, Shape{1, 2});
  const graph::Output labels = ops.placeholder("labels", DType::kFloat32, Shape{1, 2});
  const graph::Output terms = lossTerms(ops, loss, output, labels);
  return graph::testing::evaluate(graph, {{output, {2, -1}}, {labels, std::move(targets)}}, terms);
}

// The terms of three examples with one output each (2, -1, 0.5) and the classes 1, 1, 0.
std::vector<double> termsOfOneUnit(const LossSpec& loss) {
  graph::Graph graph(graph::standardOps());
  graph::Builder ops(graph);
  const graph::Output output = ops.placeholder("output", DType::kFloat32, Shape{3, 1});
  const graph::Output labels = ops.placeholder("labels", DType::kInt32, Shape{3});
  const graph::Output terms = lossTerms(ops, loss, output, labels);
  return graph::testing::evaluate(graph, {{output, {2, -1, 0.5}}, {labels, {1, 1, 0}}}, terms);
}

void expectNear(const std::vector<double>& terms, const std::vector<double>& wanted) {
  ASSERT_EQ(terms.size(), wanted.size());
  for (size_t i = 0; i < terms.size(); ++i) EXPECT_NEAR(terms[i], wanted[i], 1e-6) << i;
}

TEST(Loss, ComparesWithTargetsAsTheyAre) {
  expectNear(termsOfTargets({Loss::kMse}, {5, -1.5}), {9, 0.25});
  expectNear(termsOfTargets({Loss::kMae}, {5, -1.5}), {3, 0.5});
  expectNear(termsOfTargets({Loss::kHuber, 0, 1}, {5, -1.5}), {2.5, 0.125});
  expectNear(termsOfTargets({Loss::kHinge}, {1, 1}), {0, 2});
  expectNear(termsOfTargets({Loss::kHinge}, {0, 0}), {3, 0});
  expectNear(termsOfTargets({Loss::kSigmoidCrossEntropy}, {1, 0.25}),
             {std::log1p(std::exp(-2)), 0.25 + std::log1p(std::exp(-1))});
}

TEST(Loss, OneUnitIsComparedWithTheClassItself) {
  expectNear(termsOfOneUnit({Loss::kMse}), {1, 4, 0.25});
  expectNear(termsOfOneUnit({Loss::kHinge}), {0, 2, 1.5});
  expectNear(
      termsOfOneUnit({Loss::kSigmoidCrossEntropy}),
      {std::log1p(std::exp(-2)), 1 + std::log1p(std::exp(-1)), 0.5 + std::log1p(std::exp(-0.5))});
}

TEST(Loss, ATargetOfOneCountsItsWeight) {
  LossSpec hinge{Loss::kHinge}, sigmoid{Loss::kSigmoidCrossEntropy};
  hinge.positive_weight = sigmoid.positive_weight = 3;
  expectNear(termsOfOneUnit(hinge), {0, 6, 1.5});
  expectNear(termsOfTargets(hinge, {0, 1}), {3, 6});
  expectNear(termsOfOneUnit(sigmoid),
             {3 * std::log1p(std::exp(-2)), 3 + 3 * std::log1p(std::exp(-1)),
              0.5 + std::log1p(std::exp(-0.5))});
}

TEST(Loss, AnExampleCountsTheWeightOfItsClassInEveryUnit) {
  LossSpec weighted = lossOf("mse: {class_weights: [10, 2]}");
  EXPECT_EQ(weighted.text(), "mean_squared_error class_weights=[10, 2]");
  expectNear(termsOfOneUnit(weighted), {2, 8, 2.5});
  weighted = lossOf("mae: {class_weights: [10, 2]}");
  expectNear(termsOfOneUnit(weighted), {2, 4, 5});
  weighted = lossOf("huber: {delta: 1, class_weights: [10, 2]}");
  expectNear(termsOfOneUnit(weighted), {1, 3, 1.25});
  LossSpec several = lossOf("mae: {class_weights: [1, 3, 1]}");
  graph::Graph graph(graph::standardOps());
  graph::Builder ops(graph);
  const graph::Output output = ops.placeholder("output", DType::kFloat32, Shape{2, 3});
  const graph::Output labels = ops.placeholder("labels", DType::kInt32, Shape{2});
  const graph::Output terms = lossTerms(ops, several, output, labels);
  expectNear(graph::testing::evaluate(graph, {{output, {2, -1, 0.5, 0.25, 0, 0}}, {labels, {1, 0}}},
                                      terms),
             {6, 6, 1.5, 0.75, 0, 0});
}

// The terms of one example with outputs (2, -1, 0.5) and label 1, computed in double precision.
std::vector<double> termsOf(const LossSpec& loss) {
  graph::Graph graph(graph::standardOps());
  graph::Builder ops(graph);
  const graph::Output output = ops.placeholder("output", DType::kFloat32, Shape{1, 3});
  const graph::Output labels = ops.placeholder("labels", DType::kUInt8, Shape{1});
  const graph::Output terms = lossTerms(ops, loss, output, labels);
  return graph::testing::evaluate(graph, {{output, {2, -1, 0.5}}, {labels, {1}}}, terms);
}

void expectTerms(const LossSpec& loss, const std::vector<double>& wanted) {
  const std::vector<double> terms = termsOf(loss);
  ASSERT_EQ(terms.size(), wanted.size()) << loss.text();
  for (size_t i = 0; i < terms.size(); ++i) EXPECT_NEAR(terms[i], wanted[i], 1e-6) << loss.text();
}

TEST(Loss, ComparesWithOneHotRows) {
  expectTerms({Loss::kMse}, {4, 4, 0.25});
  expectTerms({Loss::kMae}, {2, 2, 0.5});
  expectTerms({Loss::kHuber, 0, 1}, {1.5, 1.5, 0.125});
  expectTerms({Loss::kHuber, 0, 3}, {2, 2, 0.125});
  expectTerms({Loss::kHinge}, {3, 2, 1.5});
  const auto sigmoid = [](double x, double z) {
    return std::max(x, 0.0) - x * z + std::log1p(std::exp(-std::fabs(x)));
  };
  expectTerms({Loss::kSigmoidCrossEntropy}, {sigmoid(2, 0), sigmoid(-1, 1), sigmoid(0.5, 0)});
  expectTerms({Loss::kSigmoidCrossEntropy, 0.2},
              {sigmoid(2, 0.1), sigmoid(-1, 0.9), sigmoid(0.5, 0.1)});
  const double log_sum = std::log(std::exp(2) + std::exp(-1) + std::exp(0.5));
  expectTerms({Loss::kSoftmaxCrossEntropy}, {log_sum + 1});
  expectTerms({Loss::kSoftmaxCrossEntropy, 0.3}, {log_sum - (0.1 * 2 - 0.8 * 1 + 0.1 * 0.5)});
  LossSpec weighted{Loss::kSoftmaxCrossEntropy};
  weighted.class_weights = {1, 2.5, 7};
  expectTerms(weighted, {2.5 * (log_sum + 1)});
  weighted.label_smoothing = 0.3;
  expectTerms(weighted, {2.5 * (log_sum - (0.1 * 2 - 0.8 * 1 + 0.1 * 0.5))});
}

}  // namespace
}  // namespace dtf::model
