#include "common/graph/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/graph/op_def.h"
#include "tests/unit/graph/random_graph.h"

namespace dtf::graph {
namespace {

using ::testing::ElementsAre;
using testing::evaluate;

class MergeTest : public ::testing::Test {
 protected:
  std::vector<std::string> namesLeft() const {
    std::vector<std::string> names;
    const Merged merged = mergeCommon(graph_);
    for (const Node& node : merged.graph.nodes()) names.push_back(node.name);
    return names;
  }

  Graph graph_{standardOps()};
  Builder b_{graph_};
  Output x_ = b_.placeholder("x", DType::kFloat32, {2, 2});
};

TEST_F(MergeTest, WhatIsEqualBecomesTheFirst) {
  const Output y = b_.tanh(b_.relu(x_)), again = b_.tanh(b_.relu(x_));
  b_.add(y, again);
  const Merged merged = mergeCommon(graph_);
  EXPECT_THAT(namesLeft(), ElementsAre("x", "Relu", "Tanh", "Add"));
  EXPECT_EQ(merged.nodes[static_cast<size_t>(again.node.value)],
            merged.nodes[static_cast<size_t>(y.node.value)]);
  const Node& add = merged.graph.nodes().back();
  EXPECT_EQ(add.inputs[0], add.inputs[1]);
}

TEST_F(MergeTest, WhatDiffersInAnythingStays) {
  b_.scale(x_, 2);
  b_.scale(x_, 3);                                                // another attribute
  b_.node("Scale", {x_}, {{"factor", 2.0}}, "waits", {x_.node});  // another control input
  b_.constant({1}, 0.0);
  b_.constant({1}, -0.0);
  b_.constant({1, 1}, 0.0);
  {
    const auto device = b_.deviceScope("/cpu:1");
    b_.scale(x_, 2);
  }
  EXPECT_EQ(namesLeft().size(), graph_.nodes().size());
}

TEST_F(MergeTest, TheOrderOfWaitingIsNoDifference) {
  const NodeId a = b_.relu(x_).node, b = b_.tanh(x_).node;
  b_.node("Scale", {x_}, {{"factor", 2.0}}, "first", {a, b});
  b_.node("Scale", {x_}, {{"factor", 2.0}}, "second", {b, a});
  EXPECT_THAT(namesLeft(), ElementsAre("x", "Relu", "Tanh", "first"));
}

TEST_F(MergeTest, StatefulOpsSourcesAndTargetsStay) {
  b_.placeholder("y", DType::kFloat32, {2, 2});
  for (const char* name : {"arrives", "arrives again"}) {
    b_.node("_Recv", {},
            {{"key", std::string("k")}, {"dtype", DType::kFloat32}, {"shape", Shape{2, 2}}}, name);
  }
  b_.node("NoOp", {}, {}, "train");
  b_.node("NoOp", {}, {}, "train too");
  EXPECT_EQ(namesLeft().size(), graph_.nodes().size());
}

TEST(Merge, RandomGraphsComputeTheSame) {
  size_t joined = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const testing::RandomGraph whole = testing::makeRandomGraph(random, 60, {"", "/cpu:1"});
    const Merged merged = mergeCommon(whole.graph);
    joined += whole.graph.nodes().size() - merged.graph.nodes().size();
    const auto standsFor = [&](const Output& output) {
      return Output{merged.nodes[static_cast<size_t>(output.node.value)], output.index};
    };
    testing::Feeds feeds;
    for (const auto& [output, values] : whole.feeds) feeds[standsFor(output)] = values;
    for (const Output& tensor : whole.tensors) {
      EXPECT_EQ(evaluate(merged.graph, feeds, standsFor(tensor)),
                evaluate(whole.graph, whole.feeds, tensor));
    }
  }
  EXPECT_GT(joined, 0u) << "none of the graphs had anything in common";
}

}  // namespace
}  // namespace dtf::graph
