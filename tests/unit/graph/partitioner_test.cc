#include "common/graph/partitioner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "common/graph/autodiff.h"
#include "common/graph/op_def.h"
#include "tests/unit/graph/error_text.h"
#include "tests/unit/graph/parts.h"
#include "tests/unit/graph/random_graph.h"

namespace dtf::graph {
namespace {

using ::testing::ElementsAre;
using testing::errorText;
using ::testing::HasSubstr;
using testing::nodesOf;
using testing::Values;

constexpr TaskId kPs0{JobKind::kPs, 0};
constexpr TaskId kPs1{JobKind::kPs, 1};
constexpr TaskId kWorker0{JobKind::kWorker, 0};
constexpr TaskId kWorker1{JobKind::kWorker, 1};
constexpr TaskId kWorker2{JobKind::kWorker, 2};

class PartitionerTest : public ::testing::Test {
 protected:
  PartitionerTest() {
    options_.ps_tasks = 2;
    options_.worker = fullDevice(kWorker0);
  }

  std::map<TaskId, Graph> split() { return partition(graph_, place(graph_, options_)); }

  Graph graph_{standardOps()};
  Builder b_{graph_};
  PlacerOptions options_;
};

TEST_F(PartitionerTest, ATrainingStepBecomesPullsAndPushes) {
  const Output x = b_.placeholder("x", DType::kFloat32, {4, 3});
  const Output w = b_.variable("w", {3, 2});
  const Output bias = b_.variable("b", {2});
  const Output loss = b_.mean(b_.tanh(b_.biasAdd(b_.matMul(x, w), bias)));
  const auto gradients = addGradients(graph_, loss, std::array{w, bias});
  b_.node("NoOp", {}, {}, "train",
          {b_.applyGradient(w, gradients[0]), b_.applyGradient(bias, gradients[1])});
  const auto parts = split();
  ASSERT_EQ(parts.size(), 3u);
  const Graph& worker = parts.at(kWorker0);
  EXPECT_EQ(nodesOf(worker, "_Pull").size(), 2u);
  ASSERT_EQ(nodesOf(worker, "_Push").size(), 2u);
  EXPECT_EQ(nodesOf(worker, "_Push")[0]->attribute<std::string>("variable"), "w");
  EXPECT_TRUE(nodesOf(worker, "_Send").empty());
  EXPECT_TRUE(nodesOf(worker, "_Recv").empty());
  EXPECT_EQ(worker.find("w")->op, "_Pull") << "a variable is fetched by its own name";
  EXPECT_EQ(worker.find("w")->outputs[0].shape, Shape({3, 2}));
  EXPECT_EQ(worker.find("train")->control_inputs.size(), 2u) << "waits for the pushes, locally";
  EXPECT_EQ(parts.at(kPs0).nodes().size(), 1u);
  EXPECT_EQ(parts.at(kPs1).find("b")->op, "Variable");
}

TEST_F(PartitionerTest, ASparseGradientIsPushedWithItsIndices) {
  const Output ids = b_.placeholder("ids", DType::kInt32, {3});
  const Output table = b_.variable("table", {10, 2});
  const Output rows = b_.gather(table, ids);
  const auto gradients = addGradients(graph_, b_.mean(b_.tanh(rows)), std::array{rows});
  b_.applySparseGradient(table, gradients[0], ids);
  const auto parts = split();
  const Graph& worker = parts.at(kWorker0);
  ASSERT_EQ(nodesOf(worker, "_PushSparse").size(), 1u);
  const Node& push = *nodesOf(worker, "_PushSparse")[0];
  EXPECT_EQ(push.attribute<std::string>("variable"), "table");
  EXPECT_EQ(worker.spec(push.inputs[0]).shape, (Shape{3, 2}));
  EXPECT_EQ(worker.node(push.inputs[1].node).name, "ids");
  EXPECT_TRUE(nodesOf(worker, "UnsortedSegmentSum").empty()) << "nothing of the table's size";
}

TEST_F(PartitionerTest, ASparseGradientIsOfWhatIsLookedUp) {
  const Output ids = b_.placeholder("ids", DType::kInt32, {3});
  const Output table = b_.variable("table", {10, 2});
  EXPECT_THAT(errorText([&] { b_.applySparseGradient(table, table, ids); }),
              HasSubstr("must be the same"));
}

TEST_F(PartitionerTest, OneSendServesFiveConsumers) {
  const auto on = [this](TaskId task) { return b_.deviceScope(task.device()); };
  const Output a = b_.placeholder("a", DType::kFloat32, {2});
  Output consumers;
  {
    const auto device = on(kWorker1);
    std::vector<Output> scaled;
    for (int i = 0; i < 5; ++i) scaled.push_back(b_.scale(a, i));
    consumers = b_.addN(scaled);
  }
  {
    const auto device = on(kWorker2);
    b_.add(a, consumers);
  }
  const auto parts = split();
  EXPECT_EQ(nodesOf(parts.at(kWorker0), "_Send").size(), 2u) << "one for each reading task";
  EXPECT_EQ(nodesOf(parts.at(kWorker1), "_Recv").size(), 1u);
  EXPECT_EQ(nodesOf(parts.at(kWorker1), "_Send").size(), 1u);
  EXPECT_EQ(nodesOf(parts.at(kWorker2), "_Recv").size(), 2u);
  EXPECT_EQ(nodesOf(parts.at(kWorker1), "_Recv")[0]->attribute<std::string>("key"),
            "/job:worker/replica:0/task:0/device:CPU:0;"
            "/job:worker/replica:0/task:1/device:CPU:0;a:0;0:0");
}

TEST_F(PartitionerTest, ACrossingControlEdgeBecomesOneScalar) {
  const Output a = b_.placeholder("a", DType::kFloat32, {2});
  const NodeId first = b_.node("NoOp", {}, {}, "first", {a.node});
  const auto device = b_.deviceScope(kWorker1.device());
  b_.node("NoOp", {}, {}, "second", {first});
  b_.node("NoOp", {}, {}, "third", {first});
  const auto parts = split();
  const auto sends = nodesOf(parts.at(kWorker0), "_Send");
  ASSERT_EQ(sends.size(), 1u);
  const Node& done = parts.at(kWorker0).node(sends[0]->inputs[0].node);
  EXPECT_EQ(done.op, "Const");
  EXPECT_EQ(done.outputs[0].shape, Shape());
  EXPECT_THAT(done.control_inputs, ElementsAre(parts.at(kWorker0).find("first")->id));
  EXPECT_THAT(sends[0]->attribute<std::string>("key"), HasSubstr(";^first;"));
  const auto recvs = nodesOf(parts.at(kWorker1), "_Recv");
  ASSERT_EQ(recvs.size(), 1u);
  EXPECT_THAT(parts.at(kWorker1).find("second")->control_inputs, ElementsAre(recvs[0]->id));
  EXPECT_THAT(parts.at(kWorker1).find("third")->control_inputs, ElementsAre(recvs[0]->id));
}

TEST_F(PartitionerTest, OnTheVariablesOwnPsThereIsNothingToCross) {
  const auto device = b_.deviceScope("/job:ps/task:1");
  const Output w = b_.variable("w", {2});
  b_.applyGradient(w, b_.scale(w, 2));
  const auto parts = split();
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts.at(kPs1).find("ApplyGradient")->op, "ApplyGradient");
  EXPECT_TRUE(nodesOf(parts.at(kPs1), "_Pull").empty());
}

TEST_F(PartitionerTest, ASplitVariableIsPulledAndPushedEvenOnItsFirstPs) {
  options_.partition_min_bytes = 4;
  const Output w = b_.variable("w", {64});
  const Output doubled = [this, w] {
    const auto device = b_.deviceScope("/job:ps/task:0");
    return b_.scale(w, 2);
  }();
  b_.applyGradient(w, doubled);
  const auto parts = split();
  ASSERT_EQ(parts.size(), 1u);
  const Graph& ps = parts.at(kPs0);
  EXPECT_EQ(ps.find("w")->op, "Variable");
  EXPECT_EQ(ps.find("w/pull")->op, "_Pull");
  EXPECT_EQ(ps.node(ps.find("Scale")->inputs[0].node).name, "w/pull");
  EXPECT_EQ(ps.find("ApplyGradient")->op, "_Push");
}

TEST_F(PartitionerTest, AVariableOnAnotherWorkerTravelsLikeAnyTensor) {
  const Output w = [this] {
    const auto device = b_.deviceScope(kWorker1.device());
    return b_.variable("w", {2});
  }();
  b_.applyGradient(w, b_.scale(w, 2));
  const auto parts = split();
  EXPECT_EQ(nodesOf(parts.at(kWorker0), "_Recv").size(), 1u);
  EXPECT_EQ(nodesOf(parts.at(kWorker0), "_Send").size(), 1u);
  EXPECT_EQ(parts.at(kWorker1).find("ApplyGradient")->op, "ApplyGradient");
}

TEST_F(PartitionerTest, WaitingForAPulledVariableSaysNothing) {
  const Output w = b_.variable("w", {2});
  b_.node("NoOp", {}, {}, "after", {w.node});
  const auto parts = split();
  EXPECT_TRUE(parts.at(kWorker0).find("after")->control_inputs.empty());
}

TEST_F(PartitionerTest, AVariableOnPsWaitsForNothing) {
  const NodeId before = b_.node("NoOp", {}, {}, "before", {});
  b_.node("Variable", {}, {{"shape", Shape{2}}, {"initializer", std::string("zeros")}}, "w",
          {before});
  EXPECT_THAT(errorText([this] { split(); }), HasSubstr("'w'"));
}

TEST(Partitioner, RandomGraphsComputeTheSameInPieces) {
  const std::vector<std::string> devices = {"", "/job:worker/task:1", "/job:worker/task:2/gpu:0",
                                            "/job:ps/task:0", "/job:ps/task:1"};
  PlacerOptions options;
  options.ps_tasks = 2;
  options.worker = fullDevice(kWorker0);
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    options.partition_min_bytes = seed % 2 == 0 ? 0 : 1;  // whole, split
    Random random(seed);
    const testing::RandomGraph whole = testing::makeRandomGraph(random, 40, devices);
    const auto parts = partition(whole.graph, place(whole.graph, options));
    std::map<std::string, Values> sources;
    for (const auto& [output, values] : whole.feeds) {
      sources[whole.graph.node(output.node).name] = values;
    }
    std::set<std::string> keys;
    for (const auto& [task, graph] : parts) {
      for (const Node* send : nodesOf(graph, "_Send")) {
        EXPECT_TRUE(keys.insert(send->attribute<std::string>("key")).second)
            << "a key is sent once";
      }
    }
    testing::Together<TaskId> cluster(parts, sources);
    for (const Output& tensor : whole.tensors) {
      const Node& node = whole.graph.node(tensor.node);
      EXPECT_EQ(cluster.value(node.name), testing::evaluate(whole.graph, whole.feeds, tensor));
    }
  }
}

}  // namespace
}  // namespace dtf::graph
