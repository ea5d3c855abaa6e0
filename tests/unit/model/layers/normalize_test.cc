#include "tests/unit/graph/reference_interpreter.h"
#include "tests/unit/model/layers/layer_test.h"

namespace dtf::model {
namespace {

// Normalises two examples of three numbers each.
std::vector<double> normalized(const std::string& settings) {
  const BuiltLayer built({layerOf("normalization", settings, "normalization")}, {3});
  EXPECT_EQ(built.variables(), "") << "nothing is trained";
  return graph::testing::evaluate(built.model.graph, {{built.input, {1, 2, 3, -1, 0, 30}}},
                                  built.output);
}

TEST(NormalizeLayer, SubtractsTheMeanAndDividesByTheDeviation) {
  const std::vector<double> each = normalized("{mean: [1, -2, 10], std: [2, 2, 0.5]}");
  const std::vector<double> wanted = {0, 2, -14, -1, 1, 40};
  ASSERT_EQ(each.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(each[i], wanted[i], 1e-6) << i;
  const std::vector<double> all = normalized("{mean: [1], std: [4]}");
  EXPECT_NEAR(all[1], 0.25, 1e-6);
  EXPECT_NEAR(all[5], 7.25, 1e-6);
}

TEST(NormalizeLayer, IsPartOfTheModelsMeaning) {
  EXPECT_EQ(
      layerOf("normalization", "{mean: [0.5, 1], std: [2]}", "normalization").layer->meaning("n"),
      "normalization n: mean=[0.5, 1] std=[2]");
}

TEST(NormalizeLayer, RefusesNumbersThatDoNotFit) {
  EXPECT_EQ(
      buildFailure({layerOf("normalization", "{mean: [1, 2], std: [1]}", "normalization", 5)}, {3}),
      "job.yaml:5:7: error: layer 'normalization' has 2 numbers for the last dimension of [3]: "
      "give one for each place, or one for all");
  EXPECT_NE(
      readFailure("normalization", "{mean: [0], std: [0]}").find("'std' must be at least 1e-09"),
      std::string::npos);
  EXPECT_NE(readFailure("normalization", "{mean: [0], std: []}").find("'std' has from 1 to 4096"),
            std::string::npos);
  EXPECT_NE(readFailure("normalization", "{mean: [0]}").find("missing key 'variance'"),
            std::string::npos);
}

// A declaration's setting has at most 4096 characters.
TEST(NormalizeLayer, TheTextOfManyNumbersIsShortAndTellsThemApart) {
  std::string zeros = "[0.123456789", ones = "[1.123456789";
  for (int i = 1; i < 784; ++i) {
    zeros += ", 0.123456789";
    ones += ", 0.123456789";
  }
  const auto textOf = [](const std::string& mean) {
    return layerOf("normalization", "{mean: " + mean + "], std: [1]}", "n").layer->text("n");
  };
  EXPECT_LT(textOf(zeros).size(), 200u);
  EXPECT_NE(textOf(zeros), textOf(ones));
  EXPECT_EQ(textOf("[0.5, 2"), "normalization n: mean=[0.5, 2] std=[1]");
}

TEST(NormalizeLayer, ADeviationThatFloatsCannotDivideByIsRefused) {
  EXPECT_THROW(layerOf("normalization", "{mean: [0], std: [1e-300]}", "n"), Error);
}

// Against the finite difference of the loss, in double precision.
TEST(NormalizeLayer, HasAGradientBehindATrainedLayer) {
  ModelSpec spec = softmaxModel();
  spec.input_shape = {2};
  spec.layers = {dense("before", 2, Activation::kTanh, 0, "use_bias: false"),
                 layerOf("normalization", "{mean: [0.5, -0.25], std: [2, 0.5]}", "n"),
                 dense("out", 3, Activation::kNone, 0, "use_bias: false")};
  const ModelGraph model = buildTrainingGraph(spec, 2);
  std::vector<double> weights = {0.5, -1, 0.25, 0.75};
  const std::vector<double> last = {1, -0.5, 0.25, 0.125, 2, -1};
  const auto fetch = [&](graph::Output what) {
    return graph::testing::evaluate(model.graph,
                                    {{model.features, {10, 200, 130, 40}},
                                     {model.labels, {1, 2}},
                                     {model.variables[0].value, weights},
                                     {model.variables[1].value, last}},
                                    what);
  };
  const std::vector<double> gradient = fetch(*model.variables[0].gradient);
  for (size_t i = 0; i < weights.size(); ++i) {
    constexpr double kDelta = 1e-4;
    weights[i] += kDelta;
    const double above = fetch(model.loss)[0];
    weights[i] -= 2 * kDelta;
    EXPECT_NEAR((above - fetch(model.loss)[0]) / (2 * kDelta), gradient[i], 1e-6) << i;
    weights[i] += kDelta;
  }
}

}  // namespace
}  // namespace dtf::model
