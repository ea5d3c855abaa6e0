#include "common/engine/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/engine/session.h"
#include "tests/unit/engine/devices.h"
#include "tests/unit/graph/control_functions.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::engine {
namespace {

using graph::Output;

// Each function is within the bound by itself. The plan is rejected before they are merged, encoded
// and compiled.
TEST(Plan, TheFunctionsOfAStepHaveABoundOfNodesTogether) {
  const auto large =
      graph::testing::functionOf(1, {1}, [](graph::Builder& b, std::span<const Output> p) {
        Output x = p[0];
        for (uint64_t i = 0; i < graph::Function::kNodesMax / 2; ++i) x = b.tanh(x);
        return std::vector{x};
      });
  graph::Graph graph(graph::standardOps());
  graph::Builder b(graph);
  const Output x = b.placeholder("x", DType::kFloat32, {1});
  const Output y = b.cond(b.constant({}, 1), {x}, large, large)[0], other = b.tanh(x);
  testing::Devices devices(testing::cpusOfWorker0(1));
  Session session(graph, devices.all());
  Tensor one(DType::kFloat32, {1});
  one.as<float>()[0] = 1;
  const auto run = [&](const Output& fetch) {
    return session.run(std::vector<Feed>{{"x", &one}}, std::vector{graph.node(fetch.node).name})
        .at(0)
        .as<float>()[0];
  };
  EXPECT_THAT(
      graph::testing::errorText([&] { run(y); }),
      ::testing::HasSubstr("node 'If' (If): with it the functions that the step calls have 100002 "
                           "nodes, each counted once for each call; the most is 100000"));
  EXPECT_FLOAT_EQ(run(other), std::tanh(1.0f));
}

// A training step: its target updates the parameters, which are pulled and pushed.
TEST(Plan, ParametersOnPsArePulledAndPushed) {
  graph::Graph graph(graph::standardOps());
  graph::Builder b(graph);
  const std::string worker = graph::fullDevice({JobKind::kWorker, 0}).str();
  const std::string ps = graph::fullDevice({JobKind::kPs, 0}).str();
  Output x, w;
  {
    const auto on_worker = b.deviceScope(worker);
    x = b.placeholder("x", DType::kFloat32, {2});
  }
  const auto scope = b.deviceScope(ps);
  w = b.variable("w", {2});
  Output gradient;
  {
    const auto on_worker = b.deviceScope(worker);
    gradient = b.mul(x, w);
  }
  const graph::NodeId update = b.applyGradient(w, gradient);
  const Signature signature{{"x"}, {}, {graph.node(update).name}};
  const auto without_cpu = [](const Tasks::UseCpu&) { return false; };
  const std::vector<graph::PlacedVariable> parameters = {{w.node, "w", {2}, {{0, 0, 2}}}};
  const Plan plan = makePlan(graph, signature, without_cpu, parameters);
  ASSERT_EQ(plan.parts.size(), 2u);
  const TaskPart& step = plan.parts[1];
  ASSERT_EQ(step.task, (TaskId{JobKind::kWorker, 0}));
  std::vector<std::string> ops;
  for (const graph::Node& node : step.graph.nodes()) ops.push_back(node.op);
  EXPECT_THAT(ops, ::testing::UnorderedElementsAre("Placeholder", "_Pull", "Mul", "_Push"));
  EXPECT_TRUE(step.edges.empty());
  EXPECT_EQ(makePlan(graph, signature, without_cpu).parts[1].edges.size(), 2u)
      << "of any other variable its value is sent, as its gradient is";
}

}  // namespace
}  // namespace dtf::engine
