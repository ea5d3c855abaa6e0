#include <gtest/gtest.h>

#include "tests/unit/graph/reference_interpreter.h"
#include "tests/unit/model/layers/layer_test.h"

namespace dtf::model {
namespace {

TEST(DenseLayer, GoesOverEachStepWithTheSameWeights) {
  const BuiltLayer built({dense("d", 2, Activation::kRelu)}, {3, 2});
  EXPECT_EQ(built.variables(), "d/weights [2, 2], d/biases [2]");
  EXPECT_EQ(built.shape, (Shape{3, 2}));
  EXPECT_EQ(graph::testing::evaluate(built.model.graph,
                                     {{built.input, {1, 0, 0, 1, 1, 1, 2, 0, 0, 2, 0, 0}},
                                      {built.model.variables[0].value, {1, 10, 100, -1000}},
                                      {built.model.variables[1].value, {0.5, 1}}},
                                     built.output),
            (std::vector<double>{1.5, 11, 100.5, 0, 101.5, 0, 2.5, 21, 200.5, 0, 0.5, 1}));
}

TEST(DenseLayer, FollowsAnLstmThatGivesEachStep) {
  const BuiltLayer built(
      {layerOf("lstm", "{units: 5, return_sequences: true}", "lstm"), dense("d", 3)}, {4, 2});
  EXPECT_EQ(built.shape, (Shape{4, 3}));
}

TEST(DenseLayer, DoesNotReadImages) {
  EXPECT_NE(buildFailure({dense("d", 3)}, {4, 4, 2})
                .find("layer 'd' needs a flat input, or [steps, features], got [4, 4, 2]: add "
                      "'flatten'"),
            std::string::npos);
}

}  // namespace
}  // namespace dtf::model
