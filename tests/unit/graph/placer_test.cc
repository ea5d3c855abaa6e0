#include "common/graph/placer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

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

  // Returns the bytes of the fullest ps.
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

TEST_F(PlacerTest, EvenCutsSmallVariablesWhereAPsIsFull) {
  options_.strategy = PlacementStrategy::kEven;
  options_.ps_tasks = 3;
  addVariables({784 * 10, 10, 100, 30});
  const Placement placement = place(graph_, options_);
  EXPECT_THAT(placement.variables[0].parts,
              ElementsAre(VariablePart{0, 0, 2656}, VariablePart{1, 2656, 2672},
                          VariablePart{2, 5328, 2512}));
  for (size_t i = 1; i < 4; ++i) EXPECT_EQ(placement.variables[i].parts.front().ps_task, 2u) << i;
}

TEST_F(PlacerTest, EvenFillsEachPsInProportionToItsShare) {
  options_.strategy = PlacementStrategy::kEven;
  options_.ps_tasks = 3;
  options_.shares = {3, 1, 0.5};
  options_.partition_min_bytes = 40'000;
  addVariables({16 * 450, 16 * 900});
  const Placement placement = place(graph_, options_);
  EXPECT_THAT(placement.variables[0].parts,
              ElementsAre(VariablePart{0, 0, 16 * 300}, VariablePart{1, 16 * 300, 16 * 100},
                          VariablePart{2, 16 * 400, 16 * 50}));
  EXPECT_THAT(placement.variables[1].parts,
              ElementsAre(VariablePart{0, 0, 16 * 600}, VariablePart{1, 16 * 600, 16 * 200},
                          VariablePart{2, 16 * 800, 16 * 100}))
      << "a large variable is split so, too";
}

// The pinned bytes count, and a ps that has more than its share gets nothing.
TEST_F(PlacerTest, EvenCountsPinnedBytesInSharesToo) {
  options_.strategy = PlacementStrategy::kEven;
  options_.shares = {1, 3};
  addVariables({1600, 3200});
  options_.pins["v1"] = "/job:ps/task:0";
  const Placement placement = place(graph_, options_);
  EXPECT_THAT(placement.variables[1].parts, ElementsAre(VariablePart{1, 0, 3200}));
}

TEST_F(PlacerTest, EvenDealsWholeVariablesByShare) {
  options_.strategy = PlacementStrategy::kEven;
  options_.whole_variables = true;
  options_.shares = {1, 3};
  addVariables({10, 10, 10, 10});
  EXPECT_THAT(variableTasks(), ElementsAre("ps/0", "ps/1", "ps/1", "ps/1"));
}

// Whatever is pinned, and however many there are.
TEST_F(PlacerTest, EvenFillsAllPsAlikeAndLosesNoElement) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    Graph graph{standardOps()};
    Builder builder{graph};
    PlacerOptions options = options_;
    options.strategy = PlacementStrategy::kEven;
    options.ps_tasks = static_cast<uint32_t>(1 + random() % 7);
    options.partition_min_bytes = random() % 2 == 0 ? 0 : 2000;
    uint64_t total = 0, pinned = 0;
    const size_t variables = 1 + random() % 9;
    for (size_t i = 0; i < variables; ++i) {
      const std::string name = "v" + std::to_string(i);
      const auto elements = static_cast<int64_t>(1 + random() % 3000);
      builder.variable(name, {elements});
      total += static_cast<uint64_t>(elements);
      if (random() % 5 > 0) continue;
      pinned += static_cast<uint64_t>(elements);
      options.pins[name] =
          fullDevice({JobKind::kPs, static_cast<uint32_t>(random() % options.ps_tasks)}).str();
    }
    const Placement placement = place(graph, options);
    std::vector<uint64_t> loads(options.ps_tasks);
    for (const PlacedVariable& variable : placement.variables) {
      uint64_t begin = 0;
      for (const VariablePart& part : variable.parts) {
        EXPECT_EQ(part.begin, begin);
        EXPECT_EQ(begin % kPartAlignment, 0u);
        EXPECT_GT(part.count, 0u);
        begin += part.count;
        loads[part.ps_task] += part.count;
      }
      EXPECT_EQ(begin, static_cast<uint64_t>(variable.shape.elements()));
    }
    const uint64_t share = total / options.ps_tasks;
    for (const uint64_t load : loads)
      EXPECT_LE(load, share + pinned + kPartAlignment * (variables + options.ps_tasks));
    if (pinned > 0) continue;
    for (const uint64_t load : loads) EXPECT_GE(load + kPartAlignment * (variables + 1), share);
  }
}

TEST_F(PlacerTest, EvenDealsWholeVariablesByBytes) {
  options_.strategy = PlacementStrategy::kEven;
  options_.whole_variables = true;
  options_.partition_min_bytes = 4;
  addVariables({100, 10, 10, 70});
  EXPECT_THAT(variableTasks(), ElementsAre("ps/0", "ps/1", "ps/1", "ps/1"));
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

class HybridPlacerTest : public PlacerTest {
 protected:
  HybridPlacerTest() {
    options_.strategy = PlacementStrategy::kHybrid;
    options_.ps_tasks = 5;
    options_.sparse_shards = 2;
  }
  Output addTable(const std::string& name, int64_t rows) {
    const Output table = b_.variable(name, {rows, 4});
    const Output ids = b_.placeholder(name + "_ids", DType::kInt32, {2});
    b_.applySparseGradient(table, b_.gather(table, ids), ids);
    return table;
  }
};

TEST_F(HybridPlacerTest, SparseVariablesLieOnTheFirstShardsAndTheOthersBehindThem) {
  addVariables({96});
  addTable("table", 10);
  addVariables({48});
  const Placement placement = place(graph_, options_);
  EXPECT_THAT(placement.variables[0].parts,
              ElementsAre(VariablePart{2, 0, 48}, VariablePart{3, 48, 48}));
  EXPECT_THAT(placement.variables[1].parts,
              ElementsAre(VariablePart{0, 0, 20}, VariablePart{1, 20, 20}));
  EXPECT_THAT(placement.variables[2].parts, ElementsAre(VariablePart{4, 0, 48}));
}

TEST_F(HybridPlacerTest, LargeVariablesAreSplitOverTheShardsOfTheirKind) {
  options_.partition_min_bytes = 4;
  addTable("table", 10);
  addVariables({96});
  const Placement placement = place(graph_, options_);
  EXPECT_THAT(placement.variables[0].parts,
              ElementsAre(VariablePart{0, 0, 20}, VariablePart{1, 20, 20}));
  EXPECT_THAT(
      placement.variables[1].parts,
      ElementsAre(VariablePart{2, 0, 32}, VariablePart{3, 32, 32}, VariablePart{4, 64, 32}));
}

TEST_F(HybridPlacerTest, PinsCountAndWholeVariablesAreDealtByBytes) {
  options_.whole_variables = true;
  addVariables({32, 64, 32, 32});
  options_.pins["v2"] = "/job:ps/task:2";
  addTable("table", 10);
  options_.pins["table"] = "/job:ps/task:4";
  EXPECT_THAT(variableTasks(), ElementsAre("ps/3", "ps/2", "ps/3", "ps/4", "ps/4"));
}

TEST_F(HybridPlacerTest, WithShardsOfOneKindItIsEven) {
  options_.ps_tasks = 2;
  addTable("table", 8);
  addVariables({32});
  EXPECT_THAT(variableTasks(), ElementsAre("ps/0", "ps/1"));
  options_.sparse_shards = 0;
  EXPECT_THAT(variableTasks(), ElementsAre("ps/0", "ps/1"));
  options_.ps_tasks = 0;
  EXPECT_THAT(variableTasks(), ElementsAre("worker/0", "worker/0"));
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
