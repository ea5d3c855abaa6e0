// tests/conformance/session_test.cc tests all other behaviour of local tasks.

#include "common/engine/local_tasks.h"

#include <gtest/gtest.h>

#include "common/engine/plan.h"
#include "tests/unit/engine/devices.h"

namespace dtf::engine {
namespace {

TEST(LocalTasks, DevicesAreInTheOrderInWhichTheyWereGivenAndRunWhatHasAKernel) {
  testing::Devices devices(
      {graph::fullDevice({JobKind::kWorker, 1}), graph::fullDevice({JobKind::kPs, 0})});
  LocalTasks tasks(std::make_shared<LocalProcess>(devices.all()));
  ASSERT_EQ(tasks.devices().size(), 2u);
  EXPECT_EQ(tasks.devices()[0].task, 1u);
  graph::Graph graph(graph::standardOps());
  graph::Builder b(graph);
  const graph::Output x = b.placeholder("x", DType::kFloat32, {1});
  const graph::Output y = b.relu(x);
  b.node("_Push", {y}, {{"variable", std::string("w")}}, "push");
  EXPECT_TRUE(tasks.canRun(graph.node(x.node), tasks.devices()[1]));
  EXPECT_TRUE(tasks.canRun(graph.node(y.node), tasks.devices()[1]));
  EXPECT_FALSE(tasks.canRun(*graph.find("push"), tasks.devices()[1]));
  EXPECT_TRUE(tasks.withCpu([&](runtime::Device& device, const runtime::KernelTable& kernels) {
    EXPECT_EQ(device.type(), runtime::DeviceType::kCpu);
    EXPECT_TRUE(kernels.has("Relu", runtime::DeviceType::kCpu));
  }));
}

// Two tasks; each has an edge to the other one, and an edge between its own devices.
TEST(LocalTasks, EdgesOfAPlanHaveTheSameNumbersAtBothEnds) {
  testing::Devices devices({graph::fullDevice({JobKind::kWorker, 0}),
                            graph::fullDevice({JobKind::kWorker, 0}, "CPU", 1),
                            graph::fullDevice({JobKind::kPs, 0})});
  LocalTasks tasks(std::make_shared<LocalProcess>(devices.all()));
  graph::Graph graph(graph::standardOps());
  graph::Builder b(graph);
  graph::Output at = b.placeholder("x", DType::kFloat32, {1});
  for (const auto& name :
       {graph::fullDevice({JobKind::kPs, 0}), graph::fullDevice({JobKind::kWorker, 0}, "CPU", 1),
        graph::fullDevice({JobKind::kPs, 0})}) {
    const auto device = b.deviceScope(name.str());
    at = b.relu(at);
  }
  graph::Graph placed(graph::standardOps());
  for (const graph::Node& node : graph.nodes()) {
    placed.addNode({node.name, node.op, node.inputs, node.attributes, node.control_inputs,
                    node.device.empty() ? tasks.devices()[0].str() : node.device});
  }
  const Plan plan = makePlan(placed, {.feeds = {"x"}, .fetches = {"Relu_2"}, .targets = {}}, tasks);
  ASSERT_EQ(plan.parts.size(), 2u);
  for (const TaskPart& part : plan.parts) EXPECT_EQ(part.edges_total, 3u);
  const TaskPart& ps = plan.parts[0];
  const TaskPart& worker = plan.parts[1];
  ASSERT_EQ(ps.task, (TaskId{JobKind::kPs, 0}));
  EXPECT_EQ(ps.edges.size(), 3u);
  for (const TaskPart::Edge& here : ps.edges) {
    for (const TaskPart::Edge& there : worker.edges) {
      const bool same_key = ps.graph.node(here.node).attribute<std::string>("key") ==
                            worker.graph.node(there.node).attribute<std::string>("key");
      EXPECT_EQ(same_key, here.number == there.number);
    }
  }
  EXPECT_EQ(plan.fetches[0].part, 0u);
  EXPECT_EQ(worker.feeds, std::vector<std::string>{"x"});
}

}  // namespace
}  // namespace dtf::engine
