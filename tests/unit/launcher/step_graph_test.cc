#include "launcher/step_graph.h"
#include "common/base/json.h"

#include <gmock/gmock.h>

#include <array>

#include "common/graph/autodiff.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "common/train/initial_values.h"
#include "common/train/model_part.h"

namespace dtf::launcher {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// loss = mean(xw) + mean(table rows): w is on ps/0; the table, with a gradient of rows, is on ps/1.
class StepGraphTest : public ::testing::Test {
 protected:
  StepGraphTest() {
    graph::Builder b(model_.graph);
    model_.features = b.placeholder("x", DType::kFloat32, {2, 4});
    model_.labels = b.placeholder("labels", DType::kInt32, {2});
    const graph::Output w = b.variable("w", {4, 3});
    const graph::Output table = b.variable("table", {100, 3});
    const graph::Output rows = b.gather(table, model_.labels);
    model_.logits = b.add(b.matMul(model_.features, w), rows);
    model_.loss = model_.data_loss = b.mean(model_.logits);
    const auto gradients = graph::addGradients(model_.graph, model_.loss, std::array{w, rows});
    model_.variables.push_back({w, gradients[0], b.applyGradient(w, gradients[0]), std::nullopt});
    model_.variables.push_back({table, gradients[1],
                                b.applySparseGradient(table, gradients[1], model_.labels),
                                std::nullopt});
    placement_ = graph::place(model_.graph,
                              {.ps_tasks = 2, .worker = graph::fullDevice({JobKind::kWorker, 0})});
    runtime::registerCpuKernels(kernels_);
    part_ = train::trainingPart(model_, placement_, 0, {&cpu_, &kernels_});
  }

  model::ModelGraph model_{.graph = graph::Graph(graph::standardOps())};
  graph::Placement placement_;
  runtime::KernelTable kernels_;
  runtime::CpuDevice cpu_;
  std::optional<engine::TaskPart> part_;
};

TEST_F(StepGraphTest, EachVariableIsToldWithItsPsItsBytesAndItsReaders) {
  const std::vector<ExchangedVariable> variables = exchangedVariables(*part_, placement_);
  ASSERT_EQ(variables.size(), 2U);
  EXPECT_EQ(variables[0].name, "w");
  EXPECT_EQ(variables[0].pulled_bytes, 48U);
  EXPECT_EQ(variables[0].pushed_bytes_max, 48U);
  EXPECT_THAT(variables[0].readers, ElementsAre("MatMul"));
  ASSERT_EQ(variables[0].shares.size(), 1U);
  EXPECT_EQ(variables[0].shares[0].ps.name(), "ps/0");
  EXPECT_EQ(variables[1].pulled_bytes, 1200U);
  EXPECT_TRUE(variables[1].is_pushed_as_rows);
  EXPECT_EQ(variables[1].pushed_bytes_max, 2 * (3 + 1) * 4U) << "two rows and their ids";
  EXPECT_EQ(variables[1].shares[0].ps.name(), "ps/1");
}

TEST_F(StepGraphTest, AsTextJsonAndForGraphviz) {
  const std::string text = stepText(*part_, placement_);
  EXPECT_THAT(
      text,
      AllOf(HasSubstr("worker/0: "), HasSubstr(" ops in a step, fed x, labels\n"),
            HasSubstr("/job:worker/replica:0/task:0/device:CPU:0\n"),
            HasSubstr("ps/0: in a step, sends 48 B to and receives 48 B from each worker"),
            HasSubstr("a step of a worker pulls 2 variables, 1.2 KiB, and pushes their gradients, "
                      "at most 80 B")));
  const Json said = stepJson(*part_, placement_);
  EXPECT_EQ(said["exchanged"][1]["variable"], "table");
  EXPECT_EQ(said["exchanged"][1]["rows"], true);
  const std::string dot = stepDot(*part_, placement_);
  EXPECT_THAT(dot, AllOf(HasSubstr("subgraph \"cluster /job:ps/task:1\""),
                         HasSubstr("\"ps/0 w\" -> \"MatMul\" [penwidth=2, label=\"48 B\"]"),
                         Not(HasSubstr("_Pull"))));
}

}  // namespace
}  // namespace dtf::launcher
