#include "common/graph/graph_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/graph/builder.h"
#include "common/graph/op_def.h"

namespace dtf::graph {
namespace {

using ::testing::ElementsAre;

class GraphCopyTest : public ::testing::Test {
 protected:
  static std::vector<std::string> namesIn(const Graph& graph) {
    std::vector<std::string> names;
    for (const Node& node : graph.nodes()) names.push_back(node.name);
    return names;
  }
  const Node& sourceNode(Output output) const { return source_.node(output.node); }

  Graph source_{standardOps()};
  Builder b_{source_};
  const Output x_ = b_.placeholder("x", DType::kFloat32, {2, 2});
  const Output left_out_ = b_.tanh(x_);
  const Output y_ = b_.scale(x_, 3);
};

using GraphCopyDeathTest = GraphCopyTest;

TEST_F(GraphCopyTest, ANodeReadsTheCopiesOfItsInputs) {
  const NodeId waiting =
      b_.node("Scale", {y_}, {{"factor", 2.0}}, "waits", {x_.node});  // a control input, too
  GraphCopy copy(source_);
  copy.add(sourceNode(x_));
  copy.add(sourceNode(y_));
  const NodeId copied = copy.add(source_.node(waiting));
  const Node& node = copy.copy().node(copied);
  EXPECT_EQ(node.name, "waits");
  EXPECT_EQ(node.attribute<double>("factor"), 2.0);
  EXPECT_THAT(node.inputs, ElementsAre(copy.map(y_)));
  EXPECT_THAT(node.control_inputs, ElementsAre(copy.map(x_.node)));
  EXPECT_NE(copy.map(y_).node, y_.node) << "Tanh was left out";
  EXPECT_THAT(namesIn(copy.take()), ElementsAre("x", "Scale", "waits"));
}

TEST_F(GraphCopyTest, OnlyWhatWasCopiedStandsForSomething) {
  GraphCopy copy(source_);
  copy.add(sourceNode(x_));
  EXPECT_TRUE(copy.has(x_));
  EXPECT_FALSE(copy.has(y_));
  EXPECT_EQ(copy.nodes()[static_cast<size_t>(y_.node.value)].value, -1);
}

TEST_F(GraphCopyTest, AJoinedNodeIsReadInPlaceOfItsOwnCopy) {
  const Output again = b_.scale(x_, 3), reader = b_.relu(again);
  GraphCopy copy(source_);
  copy.add(sourceNode(x_));
  const NodeId first = copy.add(sourceNode(y_));
  copy.join(again.node, first);
  const NodeId read = copy.add(sourceNode(reader));
  EXPECT_EQ(copy.copy().node(read).inputs[0], Output{first});
}

TEST_F(GraphCopyTest, OneOutputOfANodeMayBeReplaced) {
  const auto pooled = b_.maxPool(b_.placeholder("image", DType::kFloat32, {1, 2, 2, 1}),
                                 {{.size = 2}, {.size = 2}});
  GraphCopy copy(source_);
  const NodeId fed = copy.addFor(
      pooled.y, {.name = "fed",
                 .op = "Placeholder",
                 .inputs = {},
                 .attributes = {{"dtype", DType::kFloat32}, {"shape", Shape{1, 1, 1, 1}}},
                 .control_inputs = {},
                 .device = ""});
  EXPECT_EQ(copy.map(pooled.y), Output{fed});
  EXPECT_TRUE(copy.has(pooled.y));
  EXPECT_FALSE(copy.has(pooled.argmax));
}

TEST_F(GraphCopyDeathTest, ANodeBeforeItsInputsIsABug) {
  GraphCopy copy(source_);
  EXPECT_DEATH(copy.add(sourceNode(y_)), "x");
  copy.add(sourceNode(x_));
  EXPECT_DEATH(copy.join(x_.node, copy.map(x_.node)), "");
}

}  // namespace
}  // namespace dtf::graph
