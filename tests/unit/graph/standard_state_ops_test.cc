// Shapes and errors of variables, constants and transfers.

#include <cmath>

#include "tests/unit/graph/op_fixture.h"

namespace dtf::graph {
namespace {

using testing::errorText;
using ::testing::HasSubstr;

class StandardStateOps : public testing::OpTest {};

TEST_F(StandardStateOps, AnAssignmentIsTheVariablesNewValue) {
  const Output x = open({4, 3}), v = open({4}), u8 = open({4}, DType::kUInt8);
  const Output w = b_.variable("w", {4});
  EXPECT_EQ(graph_.spec({b_.node("ReadVariable", {w})}), graph_.spec(w));
  EXPECT_THROW(b_.node("ReadVariable", {u8}), Error);
  EXPECT_THROW(b_.node("ReadVariable", {w, w}), Error);
  for (const char* const op : {"Assign", "AssignAdd", "AssignSub"}) {
    EXPECT_EQ(graph_.spec({b_.node(op, {w, v})}), graph_.spec(w));
    EXPECT_THROW(b_.node(op, {w, x}), Error);
    EXPECT_THROW(b_.node(op, {w, u8}), Error);
    EXPECT_THROW(b_.node(op, {u8, u8}), Error);
  }
  EXPECT_THROW(b_.applyGradient(w, x), Error);
}

TEST_F(StandardStateOps, AScatterHasARowForEachIndex) {
  const Output x = open({4, 3}), v = open({4}), u8 = open({4}, DType::kUInt8);
  const Output table = b_.variable("table", {5, 3});
  for (const char* const op : {"ScatterAdd", "ScatterUpdate"}) {
    EXPECT_EQ(graph_.spec({b_.node(op, {table, u8, x})}), graph_.spec(table));
    EXPECT_THROW(b_.node(op, {table, u8, v}), Error);
    EXPECT_THROW(b_.node(op, {b_.mean(x), u8, v}), Error);
    EXPECT_THROW(b_.node(op, {u8, u8, v}), Error);
  }
}

TEST_F(StandardStateOps, ASendIsOfTheShapeThatItStates) {
  const Output x = open({4, 3});
  EXPECT_THROW(
      b_.node("_Send", {x}, {{"key", "k"}, {"dtype", DType::kFloat32}, {"shape", Shape()}}), Error);
}

TEST_F(StandardStateOps, AConstantIsANumberOfItsType) {
  for (const double value : {-1.0, 256.0, 0.5, 1e300, static_cast<double>(NAN)})
    EXPECT_THAT(errorText([&] { b_.constant({}, value, DType::kUInt8); }), HasSubstr("uint8"))
        << value;
  EXPECT_THAT(errorText([&] { b_.constant({}, 2147483648.0, DType::kInt32); }), HasSubstr("int32"));
  EXPECT_THAT(errorText([&] { b_.constant({}, 9223372036854775808.0, DType::kInt64); }),
              HasSubstr("int64"));
  b_.constant({}, -9223372036854775808.0, DType::kInt64);
}

TEST_F(StandardStateOps, AnUnknownInitializerIsNamedWithTheNearest) {
  EXPECT_THAT(errorText([&] { b_.variable("w", {4}, "zeroes"); }),
              HasSubstr("did you mean 'zeros'"));
}

}  // namespace
}  // namespace dtf::graph
