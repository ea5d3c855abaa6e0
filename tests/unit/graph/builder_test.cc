#include "common/graph/builder.h"

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/graph/op_def.h"

namespace dtf::graph {

TEST(Builder, NamesNodesUnderScopesAndMergesDevices) {
  Graph graph(standardOps());
  Builder b(graph);
  const Output x = b.placeholder("x", DType::kFloat32, {4});
  {
    const auto outer_name = b.nameScope("tower");
    const auto outer_device = b.deviceScope("/job:worker/task:1");
    const auto inner_name = b.nameScope("dense");
    const auto inner_device = b.deviceScope("/gpu:0");
    const Node& node = graph.node(b.relu(x).node);
    EXPECT_EQ(node.name, "tower/dense/Relu");
    EXPECT_EQ(node.device, "/job:worker/task:1/device:GPU:0");
  }
  EXPECT_EQ(graph.node(b.relu(x).node).name, "Relu");
  EXPECT_EQ(graph.node(b.relu(x).node).name, "Relu_1");
  EXPECT_EQ(graph.node(b.relu(x).node).device, "");
  EXPECT_THROW(b.variable("x", {4}), Error);
}

TEST(Builder, APlaceholderOrVariableGetsExactlyItsName) {
  Graph graph(standardOps());
  Builder b(graph);
  const auto scope = b.nameScope("softmax");
  b.variable("weights", {4});
  EXPECT_NE(graph.find("softmax/weights"), nullptr);
  EXPECT_THROW(b.variable("weights", {4}), Error);
  EXPECT_THROW(b.placeholder("weights", DType::kUInt8, {4}), Error);
}

}  // namespace dtf::graph
