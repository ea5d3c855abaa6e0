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

TEST_F(GraphTest, TransposedProductsFitByTheirStoredShapes) {
  const Output a = b_.placeholder("a", DType::kFloat32, {3, 2});
  const Output c = b_.placeholder("c", DType::kFloat32, {4, 3});
  EXPECT_EQ(graph_.spec(b_.matMul(a, c, true, true)).shape, Shape({2, 4}));
  EXPECT_THROW(b_.matMul(a, c), Error);
  EXPECT_THROW(b_.matMul(a, c, true, false), Error);
}

TEST_F(GraphTest, EachOpRefusesWhatItCannotTake) {
  const Output x = b_.placeholder("x", DType::kFloat32, {4, 3});
  const Output v = b_.placeholder("v", DType::kFloat32, {4});
  const Output u8 = b_.placeholder("u8", DType::kUInt8, {4});
  const Output scalar = b_.mean(x);
  EXPECT_THROW(b_.normalise(x, 1), Error);
  EXPECT_THROW(b_.biasAdd(x, v), Error);
  EXPECT_THROW(b_.biasAdd(v, v), Error);
  EXPECT_THROW(b_.biasAddGrad(v), Error);
  EXPECT_THROW(b_.mulRows(x, x), Error);
  EXPECT_THROW(b_.meanGrad(x, {2}), Error);
  EXPECT_THROW(b_.meanGrad(scalar, {0}), Error);
  EXPECT_THROW(b_.mean(b_.constant({0}, 0)), Error);
  EXPECT_THROW(b_.relu(u8), Error);
  EXPECT_THROW(b_.addN({}), Error);
  EXPECT_THROW(b_.addN({x, v}), Error);
  EXPECT_THROW(b_.softmax(scalar), Error);
  EXPECT_THROW(b_.sparseSoftmaxCrossEntropy(x, v), Error);
  EXPECT_THROW(b_.sparseSoftmaxCrossEntropy(x, b_.placeholder("y5", DType::kInt32, {5})), Error);
  EXPECT_THROW(b_.sigmoidCrossEntropy(x, v), Error);
  EXPECT_THROW(b_.oneHot(u8, 0), Error);
  EXPECT_THROW(b_.accuracy(v, u8), Error);
  const Output key = b_.placeholder("key", DType::kInt64, {2});
  EXPECT_EQ(graph_.spec(b_.dropout(x, key, 0, 0)), graph_.spec(x));
  EXPECT_THROW(b_.dropout(u8, key, 0.5, 0), Error);
  EXPECT_THROW(b_.dropout(x, v, 0.5, 0), Error);
  EXPECT_THROW(b_.dropout(x, b_.placeholder("key3", DType::kInt64, {3}), 0.5, 0), Error);
  EXPECT_THROW(b_.dropout(x, key, 1, 0), Error);
  EXPECT_THROW(b_.dropout(x, key, -0.1, 0), Error);
  EXPECT_THROW(b_.dropout(x, key, std::nan(""), 0), Error);
  EXPECT_THROW(b_.dropout(x, key, 0.5, -1), Error);
  EXPECT_THROW(b_.dropout(x, key, 0.5, int64_t{1} << 24), Error);
  EXPECT_THROW(b_.dropout(b_.placeholder("vast", DType::kFloat32, {int64_t{1} << 35}), key, 0.5, 0),
               Error);
  const Output w = b_.variable("w", {4}), table = b_.variable("table", {5, 3});
  EXPECT_THROW(b_.applyGradient(w, x), Error);
  EXPECT_EQ(graph_.spec({b_.node("ReadVariable", {w})}), graph_.spec(w));
  EXPECT_THROW(b_.node("ReadVariable", {u8}), Error);
  EXPECT_THROW(b_.node("ReadVariable", {w, w}), Error);
  for (const char* const op : {"Assign", "AssignAdd", "AssignSub"}) {
    EXPECT_EQ(graph_.spec({b_.node(op, {w, v})}), graph_.spec(w));
    EXPECT_THROW(b_.node(op, {w, x}), Error);
    EXPECT_THROW(b_.node(op, {w, u8}), Error);
    EXPECT_THROW(b_.node(op, {u8, u8}), Error);
  }
  for (const char* const op : {"ScatterAdd", "ScatterUpdate"}) {
    EXPECT_EQ(graph_.spec({b_.node(op, {table, u8, x})}), graph_.spec(table));
    EXPECT_THROW(b_.node(op, {table, u8, v}), Error);
    EXPECT_THROW(b_.node(op, {scalar, u8, v}), Error);
    EXPECT_THROW(b_.node(op, {u8, u8, v}), Error);
  }
  EXPECT_THROW(
      b_.node("_Send", {x}, {{"key", "k"}, {"dtype", DType::kFloat32}, {"shape", Shape()}}), Error);
  for (const double value : {-1.0, 256.0, 0.5, 1e300, static_cast<double>(NAN)})
    EXPECT_THAT(errorText([&] { b_.constant({}, value, DType::kUInt8); }), HasSubstr("uint8"))
        << value;
  EXPECT_THAT(errorText([&] { b_.constant({}, 2147483648.0, DType::kInt32); }), HasSubstr("int32"));
  EXPECT_THAT(errorText([&] { b_.constant({}, 9223372036854775808.0, DType::kInt64); }),
              HasSubstr("int64"));
  b_.constant({}, -9223372036854775808.0, DType::kInt64);
  EXPECT_THAT(errorText([&] { b_.variable("w2", {4}, "zeroes"); }),
              HasSubstr("did you mean 'zeros'"));
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
