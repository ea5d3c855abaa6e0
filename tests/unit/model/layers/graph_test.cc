#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "common/graph/autodiff.h"
#include "tests/unit/graph/reference_interpreter.h"
#include "tests/unit/model/layers/layer_test.h"

namespace dtf::model {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

LayerSpec ops(const std::string& settings, const std::string& name = "graph") {
  return layerOf("graph", settings, name);
}

const char kAffine[] = R"(
ops:
  - Variable: {name: w, shape: [3, 2], initializer: ones, device: /job:ps/task:1}
  - Variable: {name: inner/b, shape: [2], initializer: zeros}
  - MatMul: {name: xw, inputs: [input, w]}
  - BiasAdd: {name: y, inputs: [xw, inner/b]}
output: y
)";

TEST(GraphLayer, ComputesItsOpsFromTheLayerBeforeIt) {
  const BuiltLayer built({layerOf("flatten", "{}", "flat"), ops(kAffine)}, {1, 3});
  EXPECT_EQ(built.variables(), "graph/w [3, 2], graph/inner/b [2]");
  EXPECT_EQ(built.shape, (Shape{2}));
  EXPECT_EQ(built.node("graph/w").device, "/job:ps/task:1");
  EXPECT_EQ(built.model.variables[0].device_mark.line, 3);
  EXPECT_EQ(built.model.variables[1].device_mark.line, 0);
  const graph::testing::Values made =
      graph::testing::evaluate(built.model.graph,
                               {{built.input, {1, 2, 3, 4, 5, 6}},
                                {built.model.variables[0].value, {1, 10, 2, 20, 3, 30}},
                                {built.model.variables[1].value, {0.5, 0.25}}},
                               built.output);
  EXPECT_EQ(made, (graph::testing::Values{14.5, 140.25, 32.5, 320.25}));
}

TEST(GraphLayer, IsTrained) {
  BuiltLayer built({ops(kAffine)}, {3});
  graph::Builder b(built.model.graph);
  const std::array of = {built.model.variables[0].value, built.model.variables[1].value};
  const auto gradients = graph::addGradients(built.model.graph, b.mean(built.output), of);
  const graph::testing::Values of_b = graph::testing::evaluate(
      built.model.graph,
      {{built.input, {1, 2, 3, 4, 5, 6}}, {of[0], {1, 1, 1, 1, 1, 1}}, {of[1], {0, 0}}},
      gradients[1]);
  EXPECT_EQ(of_b, (graph::testing::Values{0.5, 0.5}));
}

TEST(GraphLayer, ReadsOtherLayersByName) {
  const BuiltLayer built(
      {layerOf("flatten", "{}", "first"),
       ops("ops: [Scale: {name: twice, inputs: [input], factor: 2}]\noutput: twice", "doubled"),
       ops("with: [first]\nops: [Mul: {name: y, inputs: [input, first]}]\noutput: y", "product")},
      {2});
  EXPECT_EQ(
      graph::testing::evaluate(built.model.graph, {{built.input, {1, 2, 3, 4}}}, built.output),
      (graph::testing::Values{2, 8, 18, 32}));
}

TEST(GraphLayer, KnowsTheBatchAndCallsFunctions) {
  const BuiltLayer built({ops(R"(
functions:
  - name: halve
    parameters: [{name: p, shape: [batch, 4]}]
    ops: [Scale: {name: q, inputs: [p], factor: 0.5}]
    results: [q]
ops:
  - Reshape: {name: rows, inputs: [input], shape: [batch, -1]}
  - While: {name: loop, inputs: [rows], body: halve, carried: 1, max_iterations: 3}
output: loop
)")},
                         {2, 2});
  EXPECT_EQ(built.shape, (Shape{4}));
}

TEST(GraphLayer, TellsTheFirstMistakeAtItsOp) {
  const auto failure = [](const std::string& op, const std::string& more = "") {
    return buildFailure({ops("ops:\n  - " + op + "\n" + more + "output: y\n")}, {3});
  };
  EXPECT_THAT(failure("MatMul: {name: y, inputs: [input, inputt]}"),
              AllOf(HasSubstr("settings:2:39: error:"), HasSubstr("'inputt'")));
  EXPECT_THAT(failure("MatMul: {name: y, inputs: [input, input]}"),
              HasSubstr("settings:2:5: error:"));
  EXPECT_THAT(failure("Mattmul: {name: y, inputs: [input, input]}"),
              HasSubstr("did you mean 'MatMul'"));
  EXPECT_THAT(failure("Identity: {name: z, inputs: [input]}"),
              AllOf(HasSubstr("settings:3:9: error:"), HasSubstr("'y'")));
}

TEST(GraphLayer, RefusesWhatAJobDoesOtherwise) {
  const auto failure = [](const std::string& op) {
    return buildFailure({ops("ops:\n  - " + op +
                             "\n  - Identity: {name: y, inputs: [input]}\n"
                             "output: y\n")},
                        {3});
  };
  EXPECT_THAT(failure("Placeholder: {name: fed, shape: [2], dtype: float32}"),
              AllOf(HasSubstr("settings:2:5: error:"), HasSubstr("fed by a session")));
  EXPECT_THAT(failure("Identity: {name: a, inputs: [input], device: '/job:worker/task:1'}"),
              HasSubstr("Identity asks for '/job:worker/task:1': in a job each worker computes the "
                        "whole model itself"));
  EXPECT_THAT(failure("Variable: {name: v, shape: [2], initializer: zeros, device: '/cpu:1'}"),
              HasSubstr("a Variable lives on a device like /job:ps/task:0 or "
                        "/job:ps/task:0/cpu:0, got '/device:CPU:1'"));
  EXPECT_THAT(failure("minimize: {loss: y}"),
              HasSubstr("settings:2:5: error: 'minimize' is for graph files: a job has an "
                        "'optimizer'"));
  EXPECT_THAT(failure("Reshape: {name: a, inputs: [input], shape: [None, 3]}"),
              HasSubstr("'None'"));
  EXPECT_THAT(failure("Const: {name: a, dtype: float32, value: 1, shape: [None, 3]}"),
              HasSubstr("shapes have no open size: write `batch` for the size of the batch"));
  EXPECT_THAT(failure("Variable: {name: ../v, shape: [2], initializer: zeros}"),
              HasSubstr("a Variable's name begins with a letter or digit"));
  EXPECT_THAT(failure("Variable: {name: v, shape: [2], initializer: zeros, shared_name: w}"),
              HasSubstr("'shared_name' is for sessions"));
  EXPECT_THAT(failure("Variable: {name: v, shape: [3], initializer: zeros}\n"
                      "  - AssignAdd: {inputs: [v, v]}"),
              HasSubstr("AssignAdd has a state"));
  EXPECT_THAT(failure("Dropout: {inputs: [input, input], rate: 0.5, layer: 1}"),
              HasSubstr("settings:2"));
}

// The CPU is the only device there; TensorFlow programs name it.
TEST(GraphLayer, OpsAreOnTheCpuOfTheirWorkerAndVariablesOnThatOfTheirPs) {
  const BuiltLayer built(
      {ops("ops:\n"
           "  - Variable: {name: w, shape: [3, 2], initializer: ones, device: "
           "/job:PS/replica:0/task:1/device:CPU:0}\n"
           "  - Variable: {name: v, shape: [2], initializer: zeros, device: /cpu:0}\n"
           "  - MatMul: {name: xw, inputs: [input, w], device: /cpu:0}\n"
           "  - BiasAdd: {name: y, inputs: [xw, v], device: /job:worker/cpu:0}\n"
           "output: y\n")},
      {3});
  EXPECT_EQ(built.node("graph/w").device, "/job:ps/task:1");
  EXPECT_EQ(built.node("graph/v").device, "");
  EXPECT_EQ(built.node("graph/xw").device, "");
  ASSERT_EQ(built.model.cpu_marks.size(), 2u);
  EXPECT_EQ(built.model.cpu_marks[0].line, 4);
}

TEST(GraphLayer, ItsTextIsItsOps) {
  const LayerSpec layer = ops(kAffine, "affine");
  EXPECT_EQ(layer.layer->meaning("affine"),
            "graph affine: output=y ops=4\n"
            "  {Variable: {name: w, shape: [3, 2]}}\n"
            "  {Variable: {name: inner/b, shape: [2]}}\n"
            "  {MatMul: {name: xw, inputs: [input, w]}}\n"
            "  {BiasAdd: {name: y, inputs: [xw, inner/b]}}");
  EXPECT_THAT(layer.layer->text("affine"),
              HasSubstr("shape: [3, 2], initializer: ones, device: /job:ps/task:1}}"));
}

TEST(GraphLayer, ItsTextIsBounded) {
  const auto many = [](int count, double last) {
    std::string text = "output: y\nops:\n";
    for (int i = 0; i < count; ++i)
      text += fmt::format("  - Scale: {{name: {}, inputs: [input], factor: {}}}\n",
                          i + 1 == count ? "y" : fmt::format("s{}", i), i + 1 == count ? last : 2);
    return ops(text).layer->text("graph");
  };
  EXPECT_EQ(std::ranges::count(many(2000, 1), '\n'), 513);
  EXPECT_NE(many(2000, 1), many(2000, 2));
  const auto wide = [](int last) {
    std::string inputs;
    for (int i = 0; i < 3000; ++i) inputs += "input, ";
    return ops("ops: [AddN: {name: y, inputs: [" + inputs +
               "input]}, Scale: {name: z, inputs: [y], "
               "factor: " +
               std::to_string(last) + "}]\noutput: z")
        .layer->text("graph");
  };
  EXPECT_LT(wide(1).size(), 2000u);
  EXPECT_NE(wide(1), wide(2));
}

TEST(GraphLayer, NeedsOpsAndAnOutput) {
  EXPECT_THAT(readFailure("graph", "{}"), HasSubstr("missing key 'ops'"));
  EXPECT_THAT(readFailure("graph", "ops: [NoOp: {name: a}]"), HasSubstr("missing key 'output'"));
  EXPECT_THAT(buildFailure({ops("with: [nobody]\nops: [Identity: {name: y, inputs: [input]}]\n"
                                "output: y")},
                           {3}),
              AllOf(HasSubstr("names the layer 'nobody'"), Not(HasSubstr("settings"))));
}

}  // namespace
}  // namespace dtf::model
