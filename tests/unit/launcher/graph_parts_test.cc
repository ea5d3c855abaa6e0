#include "launcher/graph_parts.h"

#include <gmock/gmock.h>

#include <deque>
#include <memory>

#include "common/engine/local_tasks.h"
#include "common/engine/plan.h"
#include "common/graph/builder.h"
#include "common/graph/device_placer.h"
#include "common/graph/op_def.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"

namespace dtf::launcher {
namespace {

using graph::Output;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// w [4,3] is on ps/0; two ops on worker/1 read the product x w; their sum goes back to worker/0.
class GraphPartsTest : public ::testing::Test {
 protected:
  GraphPartsTest() {
    graph::Graph asked(graph::standardOps());
    graph::Builder b(asked);
    Output w, sum;
    {
      const auto ps = b.deviceScope("/job:ps/task:0");
      w = b.variable("w", {4, 3});
    }
    const Output x = b.placeholder("x", DType::kFloat32, {2, 4});
    {
      const auto worker1 = b.deviceScope("/job:worker/task:1");
      const Output product{b.node("MatMul", {x, w}, {}, "product")};
      sum = {b.node("Add", {product, {b.node("Relu", {product}, {}, "relu")}}, {}, "sum")};
    }
    const graph::NodeId after = b.node("Scale", {sum}, {{"factor", 2.0}}, "out");
    b.node("Scale", {x}, {{"factor", 3.0}}, "other", {after});
    const std::vector<TaskId> tasks = {
        {JobKind::kWorker, 0}, {JobKind::kWorker, 1}, {JobKind::kPs, 0}};
    std::deque<runtime::CpuDevice> cpus;
    std::vector<engine::SessionDevice> devices;
    for (const TaskId task : tasks)
      devices.push_back({graph::fullDevice(task), &cpus.emplace_back(), &kernels_});
    runtime::registerCpuKernels(kernels_);
    engine::LocalTasks local(std::make_shared<engine::LocalProcess>(devices));
    const graph::Graph placed = graph::withDevices(
        asked, graph::placeOnDevices(asked, {.devices = local.devices(),
                                             .preferred = local.devices()[0],
                                             .can_run = [&](const auto& node, const auto& device) {
                                               return local.canRun(node, device);
                                             }}));
    parts_ = engine::makePlan(placed, {{"x"}, {"out"}, {"other"}}, local).parts;
  }

  runtime::KernelTable kernels_;
  std::vector<engine::TaskPart> parts_;
};

TEST_F(GraphPartsTest, EachTensorIsToldOnceWithItsBytesAndItsReaders) {
  std::vector<std::string> told;
  for (const SentTensor& sent : sentTensors(parts_)) {
    std::string line = sent.tensor + " " + sent.from.name() + " " + sent.to.name() + " " +
                       std::to_string(sent.bytes);
    for (const std::string& reader : sent.readers) line += " " + reader;
    told.push_back(line);
  }
  EXPECT_THAT(told, ::testing::UnorderedElementsAre("w:0 ps/0 worker/1 48 product",
                                                    "x:0 worker/0 worker/1 32 product",
                                                    "sum:0 worker/1 worker/0 24 out"));
}

TEST_F(GraphPartsTest, AsTextAndJson) {
  const std::string text = partsText(parts_);
  EXPECT_THAT(text, HasSubstr("worker/1: 3 ops\n  sends sum:0 to worker/0, 24 B\n"));
  EXPECT_THAT(text, HasSubstr("  answers with out:0, 24 B\n"));
  EXPECT_THAT(text, HasSubstr("a step sends 3 tensors between tasks, 104 B\n"));
  size_t sends = 0;
  for (const auto& part : partsJson(parts_)) sends += part["sends"].size();
  EXPECT_EQ(sends, 3u);
}

TEST_F(GraphPartsTest, ForGraphviz) {
  const std::string dot = partsDot(parts_);
  EXPECT_THAT(dot, HasSubstr("label=\"/job:worker/replica:0/task:1/device:CPU:0\";"));
  EXPECT_THAT(dot, HasSubstr("  \"product\" -> \"relu\";\n"));
  EXPECT_THAT(dot, HasSubstr("  \"out\" -> \"other\" [style=dashed];\n"));
  EXPECT_THAT(dot, HasSubstr("  \"sum\" -> \"out\" [label=\"24 B\", penwidth=2];\n"));
  EXPECT_THAT(dot, Not(HasSubstr("_Send")));
  EXPECT_THAT(dot, Not(HasSubstr("_Recv")));
}

}  // namespace
}  // namespace dtf::launcher
