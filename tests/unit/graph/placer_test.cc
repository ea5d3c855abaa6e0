#include "common/graph/placer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/error.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::graph {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::errorText;
using ::testing::HasSubstr;

constexpr int64_t kMillion = 1'000'000;

class PlacerTest : public ::testing::Test {
 protected:
  PlacerTest() {
    options_.ps_tasks = 2;
    options_.worker = fullDevice({JobKind::kWorker, 0});
  }

  std::string taskOf(const Placement& placement, Output output) const {
    return placement.device(output.node).taskId()->name();
  }

  std::vector<std::string> variableTasks() const {
    const Placement placement = place(graph_, options_);
    std::vector<std::string> tasks;
    for (const PlacedVariable& variable : placement.variables) {
      tasks.push_back(taskOf(placement, {variable.node}));
    }
    return tasks;
  }

  // Bytes of the fullest ps.
  uint64_t fullest(const Placement& placement) const {
    std::vector<uint64_t> bytes(placement.ps_tasks);
    for (const PlacedVariable& variable : placement.variables) {
      for (const VariablePart& part : variable.parts) bytes[part.ps_task] += part.count * 4;
    }
    return *std::max_element(bytes.begin(), bytes.end());
  }

  void addVariables(const std::vector<int64_t>& elements) {
    for (const int64_t n : elements) {
      b_.variable("v" + std::to_string(graph_.nodes().size() + 1), {n});
    }
  }

  Graph graph_{standardOps()};
  Builder b_{graph_};
  PlacerOptions options_;
};

TEST_F(PlacerTest, RoundRobinDealsInCreationOrderBlindToSize) {
  addVariables({100 * kMillion, 1, 100 * kMillion, 1});
  EXPECT_THAT(variableTasks(), ElementsAre("ps/0", "ps/1", "ps/0", "ps/1"));
}

TEST_F(PlacerTest, APinnedVariableStaysAndIsLeftOutOfTheDeal) {
  addVariables({1});
  {
    const auto device = b_.deviceScope("/job:ps/task:1");
    addVariables({1});
  }
  addVariables({1, 1, 1});
  options_.pins["v4"] = "/job:ps/task:1";
  EXPECT_THAT(variableTasks(), ElementsAre("ps/0", "ps/1", "ps/1", "ps/1", "ps/0"));
}

TEST_F(PlacerTest, AJobWithoutATaskIsDealtAndAnotherJobIsKept) {
  addVariables({1});
  {
    const auto device = b_.deviceScope("/job:worker/task:1");
    addVariables({1});
  }
  {
    const auto device = b_.deviceScope("/job:ps");
    addVariables({1});
  }
  EXPECT_THAT(variableTasks(), ElementsAre("ps/0", "worker/1", "ps/1"));
  EXPECT_TRUE(place(graph_, options_).variables[1].parts.empty());
}

TEST_F(PlacerTest, GreedyBalancesByBytesWithinATenthOfTheBest) {
  options_.strategy = PlacementStrategy::kGreedy;
  addVariables({100 * kMillion});
  for (int i = 0; i < 120; ++i) addVariables({kMillion});
  const uint64_t best = 110 * kMillion * 4;
  EXPECT_LE(fullest(place(graph_, options_)), best + best / 10);
}

TEST_F(PlacerTest, GreedyGivesEqualLoadsToTheLowestAndCountsPinsFirst) {
  options_.strategy = PlacementStrategy::kGreedy;
  options_.ps_tasks = 3;
  addVariables({10, 10, 10, 5});
  options_.pins["v4"] = "/job:ps/task:0";
  EXPECT_THAT(variableTasks(), ElementsAre("ps/1", "ps/2", "ps/0", "ps/0"));
}

TEST_F(PlacerTest, ALargeVariableIsSplitOverAllPsOnCacheLines) {
  options_.ps_tasks = 3;
  options_.partition_min_bytes = 4 << 20;
  const Output large = b_.variable("large", {60 * kMillion + 5});  // 240 MB
  addVariables({10, 10});
  const Placement placement = place(graph_, options_);
  const PlacedVariable& variable = placement.variables[0];
  ASSERT_EQ(variable.parts.size(), 3u);
  uint64_t begin = 0;
  for (uint32_t ps = 0; ps < 3; ++ps) {
    EXPECT_EQ(variable.parts[ps].ps_task, ps);
    EXPECT_EQ(variable.parts[ps].begin, begin);
    EXPECT_EQ(begin % kPartAlignment, 0u);
    EXPECT_NEAR(static_cast<double>(variable.parts[ps].count), 20e6, 16);
    begin += variable.parts[ps].count;
  }
  EXPECT_EQ(begin, static_cast<uint64_t>(60 * kMillion + 5));
  EXPECT_EQ(taskOf(placement, large), "ps/0");
  EXPECT_THAT(variableTasks(), ElementsAre("ps/0", "ps/0", "ps/1")) << "splitting is no turn";
}

TEST_F(PlacerTest, ASparseVariableIsSplitBetweenRows) {
  options_.ps_tasks = 3;
  options_.partition_min_bytes = 1;
  const Output table = b_.variable("table", {8, 5});
  const Output ids = b_.placeholder("ids", DType::kInt32, {2});
  b_.applySparseGradient(table, b_.gather(table, ids), ids);
  const Placement placement = place(graph_, options_);
  EXPECT_THAT(
      placement.variables[0].parts,
      ElementsAre(VariablePart{0, 0, 15}, VariablePart{1, 15, 15}, VariablePart{2, 30, 10}));
}

TEST_F(PlacerTest, SplittingLeavesOutTasksThatWouldGetNothing) {
  options_.ps_tasks = 4;
  options_.partition_min_bytes = 1;
  addVariables({40, 16});
  const Placement placement = place(graph_, options_);
  EXPECT_THAT(placement.variables[0].parts,
              ElementsAre(VariablePart{0, 0, 16}, VariablePart{1, 16, 16}, VariablePart{2, 32, 8}));
  EXPECT_EQ(placement.variables[1].parts.size(), 1u);
}

TEST_F(PlacerTest, APinnedVariableIsNotSplit) {
  options_.partition_min_bytes = 4;
  addVariables({64});
  options_.pins["v1"] = "/job:ps/task:1";
  EXPECT_THAT(place(graph_, options_).variables[0].parts, ElementsAre(VariablePart{1, 0, 64}));
}

TEST_F(PlacerTest, OtherNodesGoToTheWorkerUnlessTheySayWhere) {
  options_.worker = fullDevice({JobKind::kWorker, 1}, "GPU", 2);
  const Output w = b_.variable("w", {4});
  const Output here = b_.relu(w);
  const auto on = [this, w](const char* device) {
    const auto scope = b_.deviceScope(device);
    return b_.relu(w);
  };
  const Output cpu = on("/cpu:0");
  const Output elsewhere = on("/job:worker/task:0");
  const Output ps = on("/job:ps");
  const Output gpu = on("/job:worker/task:3/gpu:1");
  const NodeId apply = b_.applyGradient(w, gpu);
  const Placement placement = place(graph_, options_);
  EXPECT_EQ(placement.device(here.node).str(), "/job:worker/replica:0/task:1/device:GPU:2");
  EXPECT_EQ(placement.device(cpu.node).str(), "/job:worker/replica:0/task:1/device:CPU:0");
  EXPECT_EQ(placement.device(elsewhere.node).str(), "/job:worker/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(placement.device(ps.node).str(), "/job:ps/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(placement.device(gpu.node).str(), "/job:worker/replica:0/task:3/device:GPU:1");
  EXPECT_EQ(placement.device(apply), placement.device(w.node));
}

TEST_F(PlacerTest, WithoutPsVariablesStayOnTheWorker) {
  options_.ps_tasks = 0;
  addVariables({1, 1});
  EXPECT_THAT(variableTasks(), ElementsAre("worker/0", "worker/0"));
}

TEST_F(PlacerTest, InOneProcessAllPsAreTheOnlyOne) {
  const Output pinned = b_.variable("pinned", {4});
  const auto scope = b_.deviceScope("/job:ps/task:1");
  const Output asked = b_.variable("asked", {4});
  options_.pins = {{"pinned", "/job:ps/task:3"}};
  options_.one_process = true;
  options_.ps_tasks = 1;
  EXPECT_THAT(variableTasks(), ElementsAre("ps/0", "ps/0"));
  options_.ps_tasks = 0;
  const Placement placement = place(graph_, options_);
  EXPECT_EQ(taskOf(placement, pinned), "worker/0");
  EXPECT_EQ(taskOf(placement, asked), "worker/0");
}

TEST_F(PlacerTest, RefusesByName) {
  b_.variable("softmax/weights", {4});
  options_.pins = {{"softmax/wieghts", "/job:ps/task:1"}};
  EXPECT_THAT(errorText([this] { place(graph_, options_); }),
              AllOf(HasSubstr("'softmax/wieghts'"), HasSubstr("did you mean 'softmax/weights'")));
  options_.pins = {{"softmax/weights", "/job:ps/task:2"}};
  EXPECT_THAT(
      errorText([this] { place(graph_, options_); }),
      AllOf(HasSubstr("'softmax/weights'"), HasSubstr("/job:ps/task:2"), HasSubstr("2 ps")));
  options_.pins = {};
  const Output copy = Output{b_.node("Identity", {Output{NodeId{0}}})};
  b_.applyGradient(copy, copy);
  EXPECT_THAT(errorText([this] { place(graph_, options_); }), HasSubstr("must be a Variable"));
}

}  // namespace
}  // namespace dtf::graph
