#include <dtf/graph.h>
#include <gmock/gmock.h>

#include <cstring>

#include "tests/unit/api/errors.h"

namespace dtf::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ApiGraph, NodesAreNamedAfterTheirOpsUnderTheirScope) {
  Graph graph;
  const Output x = graph.placeholder("x", DTF_FLOAT32, {2, 4});
  Output y;
  {
    const auto layer = graph.scope("layer");
    const Output w = graph.variable("w", {4, 3});
    EXPECT_EQ(graph.name(w), "layer/w:0");
    {
      const auto inner = graph.scope("inner");
      EXPECT_EQ(graph.name(graph.constant({}, 1)), "layer/inner/Const:0");
    }
    y = graph.matMul(x, w);
  }
  EXPECT_EQ(graph.name(y), "layer/MatMul:0");
  EXPECT_EQ(graph.name(graph.relu(y)), "Relu:0");
  EXPECT_EQ(graph.name(graph.relu(y)), "Relu_1:0");
  EXPECT_THAT(graph.dims(y), ElementsAre(2, 3));
  EXPECT_TRUE(graph.dims(graph.mean(y)).empty());
}

// A function that doubles its input.
struct Doubled {
  Doubled() { function = {&graph, {x}, {graph.scale(x, 2)}}; }
  Graph graph;
  const Output x = graph.placeholder("x", DTF_FLOAT32, {3});
  Function function;
};

TEST(ApiGraph, BranchesAndLoopsAreMadeOfGraphs) {
  Graph graph;
  const Output x = graph.placeholder("x", DTF_FLOAT32, {3});
  const Output yes = graph.placeholder("yes", DTF_UINT8, {});
  std::vector<Output> either;
  LoopResults loop;
  {
    const Doubled doubled;  // not needed once the op is made
    either = graph.cond(yes, {x}, doubled.function, doubled.function);
    loop = graph.whileLoop({.carried = {x},
                            .sequences = {},
                            .captured = {},
                            .body = doubled.function,
                            .cond = {},
                            .max_iterations = 4,
                            .keep_carried = true});
  }
  ASSERT_EQ(either.size(), 1u);
  EXPECT_THAT(graph.dims(either[0]), ElementsAre(3));
  EXPECT_THAT(graph.dims(loop.carried[0]), ElementsAre(3));
  EXPECT_TRUE(graph.dims(loop.iterations).empty());
  const Output loss = graph.mean(loop.carried[0]);
  EXPECT_THAT(graph.dims(graph.gradients(loss, {x})[0]), ElementsAre(3));
}

TEST(ApiGraph, FunctionsThatDoNotFitAreRefused) {
  Graph graph;
  const Output x = graph.placeholder("x", DTF_FLOAT32, {4});
  const Doubled doubled;
  const auto refusalOf = [&](const Function& body) {
    return refusal([&] {
      graph.whileLoop({.carried = {x},
                       .sequences = {},
                       .captured = {},
                       .body = body,
                       .cond = {},
                       .max_iterations = 2});
    });
  };
  EXPECT_THAT(refusal([&] {
                graph.whileLoop({.carried = {x},
                                 .sequences = {},
                                 .captured = {},
                                 .body = doubled.function,
                                 .cond = {}});
              }),
              HasSubstr("max_iterations must be from 1 to 16777216, it is 0"));
  EXPECT_THAT(refusalOf(doubled.function),
              HasSubstr("the body takes float32[3] as argument 0, but is called with"));
  EXPECT_THAT(refusalOf({}), HasSubstr("a function without a graph"));
  EXPECT_THAT(
      refusalOf({&doubled.graph, {}, {}}),
      HasSubstr("a node (While), its attribute 'body': a function reads the Placeholder 'x', "
                "which is none of its parameters"));
  EXPECT_THAT(refusal([&] {
                graph.op("While", {x}, {{"body", Function{&doubled.graph, {}, {}}}}, "loop");
              }),
              HasSubstr("node 'loop' (While), its attribute 'body': a function reads"));
  EXPECT_THAT(refusalOf({&doubled.graph, {{9, 0}}, {}}), HasSubstr("no node 9"));
  EXPECT_THAT(refusalOf({&doubled.graph, {doubled.x}, {{1, 1}}}), HasSubstr("no node 1"));
  EXPECT_THAT(std::string(dtf_op_names()),
              HasSubstr("If(any number of inputs) then_branch:function else_branch:function\n"));
}

TEST(ApiGraph, RefusesWhatDoesNotFitAndKeepsWhatItHas) {
  Graph graph;
  const Output x = graph.placeholder("x", DTF_FLOAT32, {2, 4});
  EXPECT_THAT(refusal([&] { graph.placeholder("x", DTF_FLOAT32, {}); }),
              AllOf(StartsWith("78: "), HasSubstr("the name is taken")));
  EXPECT_THAT(refusal([&] { graph.op("MatMull", {x, x}); }), HasSubstr("did you mean 'MatMul'"));
  EXPECT_THAT(refusal([&] { graph.op("Scale", {x}); }), HasSubstr("'factor' is missing"));
  EXPECT_THAT(refusal([&] {
                graph.op("Scale", {x}, {{"factor", true}});
              }),
              HasSubstr("must be a double"));
  EXPECT_THAT(refusal([&] { graph.matMul(x, x); }), StartsWith("78: "));
  EXPECT_THAT(refusal([&] { graph.relu({99, 0}); }), HasSubstr("does not exist"));
  EXPECT_THAT(refusal([&] { graph.relu({x.node, 1}); }), HasSubstr("does not exist"));
  EXPECT_THAT(refusal([&] {
                graph.op("Relu", {x}, {}, "", {{99, 0}});
              }),
              HasSubstr("control input"));
  EXPECT_THAT(refusal([&] { graph.placeholder("y", DTF_FLOAT32, {-2}); }), StartsWith("78: "));
  EXPECT_THAT(refusal([&] { graph.name({99, 0}); }), StartsWith("78: "));
  EXPECT_THAT(refusal([&] { graph.dims({x.node, 1}); }), StartsWith("78: "));
  EXPECT_EQ(graph.name(graph.relu(x)), "Relu:0");
}

TEST(ApiGraph, GradientsOfALossAreOutputsOfTheShapesOfTheirVariables) {
  Graph graph;
  const Output x = graph.placeholder("x", DTF_FLOAT32, {2, 4});
  const Output w = graph.variable("w", {4, 3}), other = graph.variable("other", {5});
  const Output loss = graph.mean(graph.matMul(x, w));
  const std::vector<Output> gradients = graph.gradients(loss, {w, x});
  EXPECT_THAT(graph.dims(gradients.at(0)), ElementsAre(4, 3));
  EXPECT_THAT(graph.dims(gradients.at(1)), ElementsAre(2, 4));
  EXPECT_THAT(refusal([&] { graph.gradients(loss, {other}); }),
              AllOf(StartsWith("78: "), HasSubstr("other")));
  EXPECT_THAT(refusal([&] { graph.gradients({99, 0}, {w}); }), StartsWith("78: "));
}

TEST(ApiGraph, ACopyHasTheNodesAndGrowsAlone) {
  dtf_graph *graph = nullptr, *copy = nullptr;
  const auto add = [](dtf_graph* to, const char* name) {
    dtf_node* node = nullptr;
    int32_t id = -1;
    check(dtf_node_new(to, "NoOp", name, &node));
    check(dtf_node_add(node, &id));
    return id;
  };
  check(dtf_graph_new(&graph));
  EXPECT_EQ(add(graph, "first"), 0);
  check(dtf_graph_copy(graph, &copy));
  EXPECT_EQ(add(copy, "second"), 1);
  EXPECT_EQ(dtf_graph_node_name(graph, 1), nullptr);
  dtf_graph_free(graph);
  EXPECT_STREQ(dtf_graph_node_name(copy, 0), "first");
  dtf_graph_free(copy);
}

TEST(ApiGraph, OpsAreListedWithTheirAttributes) {
  const char* const ops = dtf_op_names();
  EXPECT_NE(std::strstr(ops, "MatMul(2 inputs) transpose_a:bool? transpose_b:bool?\n"), nullptr)
      << ops;
  EXPECT_NE(std::strstr(ops, "Concat(any number of inputs) axis:int\n"), nullptr) << ops;
  EXPECT_EQ(std::strstr(ops, "\n_"), nullptr) << "dtf's own";
}

}  // namespace
}  // namespace dtf::testing
