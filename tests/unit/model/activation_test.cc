#include "common/model/activation.h"

#include <gtest/gtest.h>

#include "common/graph/op_def.h"

namespace dtf::model {
namespace {

TEST(Activation, IsNamedAsTheFileDoes) {
  EXPECT_EQ(nameOf(Activation::kNone), "none");
  EXPECT_EQ(nameOf(Activation::kRelu), "relu");
  EXPECT_EQ(nameOf(Activation::kSigmoid), "sigmoid");
  EXPECT_EQ(nameOf(Activation::kTanh), "tanh");
}

TEST(Activation, NoneIsTheInputItself) {
  graph::Graph graph(graph::standardOps());
  graph::Builder ops(graph);
  const graph::Output x = ops.placeholder("x", DType::kFloat32, Shape{2, 3});
  EXPECT_EQ(activate(ops, Activation::kNone, x), x);
  const graph::Output y = activate(ops, Activation::kTanh, x);
  EXPECT_EQ(graph.node(y.node).op, "Tanh");
}

}  // namespace
}  // namespace dtf::model
