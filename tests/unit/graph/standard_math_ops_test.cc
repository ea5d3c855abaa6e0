// Shapes and errors of arithmetic.

#include <cmath>

#include "tests/unit/graph/op_fixture.h"

namespace dtf::graph {
namespace {

using ::testing::ElementsAre;
using testing::errorText;
using ::testing::HasSubstr;
using testing::Values;

class StandardMathOps : public testing::OpTest {};

TEST_F(StandardMathOps, TransposedProductsFitByTheirStoredShapes) {
  const Output a = b_.placeholder("a", DType::kFloat32, {3, 2});
  const Output c = b_.placeholder("c", DType::kFloat32, {4, 3});
  EXPECT_EQ(graph_.spec(b_.matMul(a, c, true, true)).shape, Shape({2, 4}));
  EXPECT_THROW(b_.matMul(a, c), Error);
  EXPECT_THROW(b_.matMul(a, c, true, false), Error);
}

TEST_F(StandardMathOps, Choices) {
  const Output a = fed({3}, {1, 2, 3}), b = fed({3}, {-1, std::nan(""), -3});
  const Output condition = fed({3}, {0, 1, 1}, DType::kUInt8);
  EXPECT_THAT(value(Output{b_.node("Select", {condition, a, b})}), ElementsAre(-1, 2, 3));
  EXPECT_THAT(errorText([&] {
                b_.node("Select", {a, a, b});
              }),
              HasSubstr("condition float32[3] and one of a's shape uint8[3] must be the same"));
}

TEST_F(StandardMathOps, RefuseInWords) {
  const auto text = [](auto f) { return errorText(f); };
  const Output x = fed({2, 3}, Values(6)), four = fed({4}, Values(4));
  const Output whole = fed({2, 3}, Values(6), DType::kInt32);
  EXPECT_THAT(text([&] { b_.add(x, four); }), HasSubstr("a [2, 3] and b [4] don't fit"));
  EXPECT_THAT(text([&] { b_.div(x, whole); }), HasSubstr("b int32[2, 3] must be float32"));
  EXPECT_THAT(text([&] { b_.less(x, whole); }), HasSubstr("must be of one dtype"));
  EXPECT_THAT(text([&] { b_.sum(x, {2}); }), HasSubstr("axis 2 is none of float32[2, 3]"));
  EXPECT_THAT(text([&] { b_.mean(x, {1, 1}); }), HasSubstr("axis 1 is named twice"));
  EXPECT_THAT(text([&] { b_.argMax(x, -1); }),
              HasSubstr("axis -1 is none of float32[2, 3]: axes count from 0, so write 1 for -1"));
  EXPECT_THAT(text([&] { b_.argMax(fed({2, 0}, {}), 1); }), HasSubstr("no elements along axis 1"));
  EXPECT_THAT(text([&] { b_.broadcastTo(x, {3}); }), HasSubstr("can't be repeated to the shape"));
}

TEST_F(StandardMathOps, RefuseWhatDoesNotFit) {
  const Output x = open({4, 3}), v = open({4}), u8 = open({4}, DType::kUInt8);
  const Output scalar = b_.mean(x);
  EXPECT_THROW(b_.normalise(x, 1), Error);
  EXPECT_THROW(b_.biasAdd(x, v), Error);
  EXPECT_THROW(b_.biasAdd(v, v), Error);
  EXPECT_THROW(b_.biasAddGrad(v), Error);
  EXPECT_THROW(b_.mulRows(x, x), Error);
  EXPECT_THROW(b_.meanGrad(x, {2}), Error);
  EXPECT_THROW(b_.meanGrad(scalar, {0}), Error);
  EXPECT_THROW(b_.mean(b_.constant({0}, 0)), Error);
  EXPECT_THROW(b_.addN({}), Error);
  EXPECT_THROW(b_.addN({x, v}), Error);
}

TEST_F(StandardMathOps, ComparisonsAreBytes) {
  const Output x = open({2});
  EXPECT_EQ(graph_.spec(b_.less(x, x)), (TensorSpec{DType::kUInt8, Shape{2}}));
  EXPECT_THAT(errorText([&] { b_.equal(x, open({2, 4})); }), HasSubstr("b [2, 4]"));
}

}  // namespace
}  // namespace dtf::graph
