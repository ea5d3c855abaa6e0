#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/base/random.h"
#include "common/graph/autodiff.h"
#include "tests/unit/graph/reference_interpreter.h"
#include "tests/unit/model/layers/layer_test.h"

namespace dtf::model {
namespace {

using graph::testing::Feeds;
using graph::testing::Values;
using ::testing::HasSubstr;

// Returns random values for every variable and the input.
Feeds randomFeeds(const BuiltLayer& built) {
  Random random(7);
  Feeds feeds;
  const auto fill = [&](graph::Output tensor) {
    for (int64_t i = 0; i < built.model.graph.spec(tensor).shape.elements(); ++i)
      feeds[tensor].push_back(random.uniform(-1.0f, 1.0f));
  };
  fill(built.input);
  for (const ModelVariable& variable : built.model.variables) fill(variable.value);
  return feeds;
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

// The layer's equations for one example; returns its output after each step.
std::vector<Values> lstmByHand(const Values& x, size_t steps, size_t features, size_t units,
                               const Values& w, const Values& r, const Values& b,
                               double forget_bias) {
  Values h(units, 0), c(units, 0);
  std::vector<Values> outputs;
  for (size_t t = 0; t < steps; ++t) {
    Values z = b;
    for (size_t g = 0; g < 4 * units; ++g) {
      for (size_t k = 0; k < features; ++k) z[g] += x[t * features + k] * w[k * 4 * units + g];
      for (size_t k = 0; k < units; ++k) z[g] += h[k] * r[k * 4 * units + g];
    }
    for (size_t u = 0; u < units; ++u) {
      c[u] =
          sigmoid(z[units + u] + forget_bias) * c[u] + sigmoid(z[u]) * std::tanh(z[2 * units + u]);
      h[u] = sigmoid(z[3 * units + u]) * std::tanh(c[u]);
    }
    outputs.push_back(h);
  }
  return outputs;
}

class LstmLayerTest : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(All, LstmLayerTest, ::testing::Bool(),
                         [](const auto& each) { return each.param ? "Sequences" : "LastStep"; });

TEST_P(LstmLayerTest, ComputesItsEquations) {
  constexpr size_t kSteps = 4, kFeatures = 3, kUnits = 5;
  const BuiltLayer built({layerOf("lstm",
                                  "{units: 5, forget_bias: 0.5, return_sequences: " +
                                      std::string(GetParam() ? "true}" : "false}"),
                                  "lstm")},
                         {kSteps, kFeatures});
  EXPECT_EQ(built.variables(),
            "lstm/weights [3, 20], lstm/biases [20], lstm/recurrent_weights [5, 20]");
  EXPECT_EQ(built.shape.str(), GetParam() ? "[4, 5]" : "[5]");
  const Feeds feeds = randomFeeds(built);
  const auto valueOf = [&](const char* name) -> const Values& {
    return feeds.at({built.node(name).id, 0});
  };
  const Values made = graph::testing::evaluate(built.model.graph, feeds, built.output);
  Values expected;
  for (size_t example = 0; example < 2; ++example) {
    const auto begin =
        feeds.at(built.input).begin() + static_cast<std::ptrdiff_t>(example * kSteps * kFeatures);
    const auto steps = lstmByHand(Values(begin, begin + kSteps * kFeatures), kSteps, kFeatures,
                                  kUnits, valueOf("lstm/weights"),
                                  valueOf("lstm/recurrent_weights"), valueOf("lstm/biases"), 0.5);
    for (size_t t = GetParam() ? 0 : kSteps - 1; t < kSteps; ++t)
      expected.insert(expected.end(), steps[t].begin(), steps[t].end());
  }
  ASSERT_EQ(made.size(), expected.size());
  for (size_t i = 0; i < made.size(); ++i) EXPECT_NEAR(made[i], expected[i], 1e-12) << i;
}

TEST(LstmLayer, IsTrainedOnlyInTrainingGraphs) {
  BuiltLayer training({layerOf("lstm", "{units: 5}", "lstm")}, {4, 3});
  BuiltLayer evaluation({layerOf("lstm", "{units: 5}", "lstm")}, {4, 3}, false);
  const auto gradient = [](BuiltLayer& built) {
    graph::Builder b(built.model.graph);
    const std::vector of = {built.model.variables[0].value};
    return addGradients(built.model.graph, b.mean(built.output), of).size();
  };
  EXPECT_EQ(gradient(training), 1u);
  EXPECT_THROW(gradient(evaluation), Error);
}

TEST(LstmLayer, SaysWhatItNeeds) {
  EXPECT_THAT(buildFailure({layerOf("lstm", "{units: 5}", "l")}, {28}),
              HasSubstr("layer 'l' needs sequences of [steps, features], got [28]"));
  EXPECT_THAT(buildFailure({layerOf("lstm", "{units: 5}", "l")}, {28, 28, 1}),
              HasSubstr("got [28, 28, 1]: 'reshape' makes them of rows"));
  EXPECT_THAT(
      buildFailure({layerOf("lstm", "{units: 10000}", "l")}, {2, 3}),
      HasSubstr("layer 'l': an orthogonal initial value of [10000, 40000] would take long to "
                "draw: choose another recurrent_initializer"));
  EXPECT_THAT(buildFailure({layerOf("lstm", "{units: 10000, kernel_initializer: orthogonal}", "l")},
                           {2, 10'000}),
              HasSubstr("choose another kernel_initializer"));
  EXPECT_THAT(readFailure("lstm", "{}"), HasSubstr("'units'"));
  EXPECT_EQ(layerOf("lstm", "{units: 8}", "l").layer->text("l"),
            "lstm l: units=8 return_sequences=false forget_bias=1 "
            "kernel_initializer=glorot_uniform recurrent_initializer=orthogonal");
}

}  // namespace
}  // namespace dtf::model
