#include "common/runtime/gradient_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "tests/unit/runtime/models.h"

namespace dtf::runtime {
namespace {

using graph::Output;
using testing::Classifier;
using testing::makeClassifier;

std::vector<std::string> namesOf(const LoweredStep& step) {
  std::vector<std::string> names;
  for (const Operation& operation : step.operations) names.push_back(operation.name);
  return names;
}

// Expects that each operation reads outputs of earlier ones, or of none.
void expectTopological(const std::vector<Operation>& operations) {
  std::set<Output> made, all;
  for (const Operation& operation : operations)
    all.insert(operation.outputs.begin(), operation.outputs.end());
  for (const Operation& operation : operations) {
    for (const Output& input : operation.inputs)
      EXPECT_TRUE(made.contains(input) || !all.contains(input)) << operation.name;
    made.insert(operation.outputs.begin(), operation.outputs.end());
  }
}

TEST(GradientOrder, OfTwoProductsBackwardsThatOfTheWeightsComesFirst) {
  Random random(1);
  const Classifier model = makeClassifier(random, {.batch = 5, .inputs = 30, .hidden = {20, 20}});
  LoweredStep step = lower(model.graph, std::vector{model.loss});
  const std::vector<std::string> before = namesOf(step);
  makeGradientsEarly(step);
  const std::vector<std::string> after = namesOf(step);
  EXPECT_TRUE(std::ranges::is_permutation(after, before));
  EXPECT_NE(after, before) << "there is something to see";
  expectTopological(step.operations);

  std::set<Output> gradients;
  for (const BoundTensor& gradient : step.gradients) gradients.insert(gradient.tensor);
  // After a gradient's last input, only gradients follow.
  for (size_t i = 0; i < step.operations.size(); ++i) {
    const Operation& operation = step.operations[i];
    if (!gradients.contains(operation.outputs.at(0))) continue;
    size_t last = 0;
    for (size_t k = 0; k < i; ++k)
      for (const Output& output : step.operations[k].outputs)
        if (std::ranges::count(operation.inputs, output) > 0) last = k;
    for (size_t k = last + 1; k < i; ++k)
      EXPECT_TRUE(gradients.contains(step.operations[k].outputs.at(0)))
          << step.operations[k].name << " is ahead of " << operation.name;
  }
}

TEST(GradientOrder, WithoutGradientsNothingMoves) {
  Random random(1);
  const Classifier model =
      makeClassifier(random, {.batch = 5, .inputs = 30, .hidden = {20}, .gradients = false});
  LoweredStep step = lower(model.graph, std::vector{model.loss});
  const std::vector<std::string> before = namesOf(step);
  makeGradientsEarly(step);
  EXPECT_EQ(namesOf(step), before);
}

}  // namespace
}  // namespace dtf::runtime
