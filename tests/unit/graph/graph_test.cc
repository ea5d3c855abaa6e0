#include "common/graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/base/error.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::graph {
namespace {

using ::testing::AllOf;
using testing::errorText;
using ::testing::HasSubstr;

class GraphTest : public ::testing::Test {
 protected:
  Graph graph_{standardOps()};
  Builder b_{graph_};
};

TEST_F(GraphTest, InfersShapesAsItIsBuilt) {
  const Output x = b_.placeholder("x", DType::kUInt8, {32, 28, 28, 1});
  const Output flat = b_.reshape(b_.normalise(x, 1.0 / 255), {32, 784});
  const Output logits =
      b_.biasAdd(b_.matMul(flat, b_.variable("w", {784, 10})), b_.variable("b", {10}));
  const auto entropy =
      b_.sparseSoftmaxCrossEntropy(logits, b_.placeholder("y", DType::kUInt8, {32}));
  EXPECT_EQ(graph_.spec(logits), (TensorSpec{DType::kFloat32, {32, 10}}));
  EXPECT_EQ(graph_.spec(entropy.loss).shape, Shape({32}));
  EXPECT_EQ(graph_.spec(entropy.backprop).shape, Shape({32, 10}));
  EXPECT_EQ(graph_.spec(b_.mean(entropy.loss)).shape, Shape());
}

TEST_F(GraphTest, AMisfitNamesTheNodeAndBothShapes) {
  const Output x = b_.placeholder("x", DType::kFloat32, {100, 784});
  const Output w = b_.variable("w", {785, 10});
  const auto scope = b_.nameScope("softmax");
  EXPECT_THAT(errorText([&] { b_.matMul(x, w); }),
              AllOf(HasSubstr("'softmax/MatMul'"), HasSubstr("float32[100, 784]"),
                    HasSubstr("float32[785, 10]"), HasSubstr("784"), HasSubstr("785")));
  EXPECT_THAT(errorText([&] { b_.add(x, w); }),
              AllOf(HasSubstr("'softmax/Add'"), HasSubstr("[100, 784]"), HasSubstr("[785, 10]")));
  EXPECT_THAT(errorText([&] { b_.reshape(x, {7}); }),
              AllOf(HasSubstr("'softmax/Reshape'"), HasSubstr("78400"), HasSubstr("[7]")));
}

TEST_F(GraphTest, AddNodeValidatesWhatCallersSay) {
  const Output x = b_.placeholder("x", DType::kFloat32, {4});
  EXPECT_THAT(errorText([&] {
                graph_.addNode({"n", "Rleu", {x}, {}});
              }),
              AllOf(HasSubstr("'n'"), HasSubstr("did you mean 'Relu'")));
  EXPECT_THAT(errorText([&] {
                graph_.addNode({"n", "Relu", {}, {}});
              }),
              HasSubstr("takes 1 input"));
  EXPECT_THAT(errorText([&] { graph_.addNode({"x", "Relu", {x}, {}}); }), HasSubstr("taken"));
  EXPECT_THAT(errorText([&] { graph_.addNode({"n", "Scale", {x}, {}}); }), HasSubstr("'factor'"));
  EXPECT_THAT(errorText([&] {
                graph_.addNode({"n", "Scale", {x}, {{"factor", true}}});
              }),
              HasSubstr("must be a double, not a bool"));
  EXPECT_THAT(errorText([&] {
                graph_.addNode({"n", "Scale", {x}, {{"fatcor", 1.0}}});
              }),
              HasSubstr("did you mean 'factor'"));
  EXPECT_THROW(graph_.addNode({"n", "Relu", {Output{x.node, 1}}, {}}), Error);
  EXPECT_THROW(graph_.addNode({"n", "Relu", {Output{NodeId{7}}}, {}}), Error);
  EXPECT_THROW(graph_.addNode({"", "Relu", {x}, {}}), Error);
  EXPECT_THROW(graph_.addNode({"n", "NoOp", {}, {}, {NodeId{9}}}), Error);
  EXPECT_EQ(graph_.nodes().size(), 1u) << "a refused node leaves nothing behind";
}

TEST_F(GraphTest, AnAbsentOptionalAttributeIsItsTypesZero) {
  const Output a = b_.placeholder("a", DType::kFloat32, {2, 2});
  const NodeId product = graph_.addNode({"p", "MatMul", {a, a}, {}});
  EXPECT_FALSE(graph_.node(product).attribute<bool>("transpose_a"));
}

}  // namespace
}  // namespace dtf::graph
