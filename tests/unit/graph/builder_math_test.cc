// Arithmetic that broadcasts and reductions: shapes, and values worked out by hand.

#include <cmath>

#include "tests/unit/graph/op_fixture.h"

namespace dtf::graph {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using testing::errorText;
using ::testing::HasSubstr;

class BuilderMath : public testing::OpTest {};

TEST_F(BuilderMath, ByElement) {
  const Output x = fed({3}, {1, 4, 16}), y = fed({3}, {2, -4, 16});
  EXPECT_THAT(value(b_.div(x, y)), ElementsAre(0.5, -1, 1));
  EXPECT_THAT(value(b_.maximum(x, y)), ElementsAre(2, 4, 16));
  EXPECT_THAT(value(b_.minimum(x, y)), ElementsAre(1, -4, 16));
  EXPECT_THAT(value(b_.sqrt(x)), ElementsAre(1, 2, 4));
  EXPECT_THAT(value(b_.rsqrt(x)), ElementsAre(1, 0.5, 0.25));
  EXPECT_THAT(value(b_.log(b_.exp(fed({1}, {3})))), ElementsAre(3));
}

TEST_F(BuilderMath, Powers) {
  const Output x = fed({6}, {2, 4, 0, -2, -8, 9}), y = fed({6}, {3, 0.5, 0, -2, 3, -0.5});
  EXPECT_THAT(value(b_.pow(x, y)), ElementsAre(8, 2, 1, 0.25, -512, DoubleEq(1.0 / 3)));
  EXPECT_THAT(value(b_.pow(fed({2, 1}, {2, 3}), fed({2}, {1, 2}))), ElementsAre(2, 4, 3, 9));
  EXPECT_TRUE(std::isnan(value(b_.pow(fed({}, {-1}), fed({}, {0.5})))[0]));
  EXPECT_THAT(errorText([&] {
                b_.pow(x, fed({4}, {1, 2, 3, 4}));
              }),
              HasSubstr("a [6] and b [4] don't fit"));
}

TEST_F(BuilderMath, OperandsAreRepeatedAsNumPyDoes) {
  const Output rows = fed({2, 1}, {10, 20}), columns = fed({3}, {1, 2, 3});
  EXPECT_EQ(shape(b_.add(rows, columns)), Shape({2, 3}));
  EXPECT_THAT(value(b_.add(rows, columns)), ElementsAre(11, 12, 13, 21, 22, 23));
  EXPECT_THAT(value(b_.sub(columns, fed({}, {1}))), ElementsAre(0, 1, 2));
  EXPECT_THAT(value(b_.less(columns, fed({1}, {2}))), ElementsAre(1, 0, 0));
  EXPECT_EQ(shape(b_.mul(fed({0, 1}, {}), columns)), Shape({0, 3}));
  EXPECT_THAT(value(b_.broadcastTo(rows, {2, 2})), ElementsAre(10, 10, 20, 20));
}

TEST_F(BuilderMath, SumsAndMeansOverDimensions) {
  const Output x = fed({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(value(b_.sum(x, {0})), ElementsAre(5, 7, 9));
  EXPECT_THAT(value(b_.sum(x, {1})), ElementsAre(6, 15));
  EXPECT_THAT(value(b_.mean(x, {1})), ElementsAre(2, 5));
  EXPECT_THAT(value(b_.sum(x)), ElementsAre(21));
  EXPECT_EQ(shape(b_.sum(x)), Shape());
  EXPECT_EQ(shape(b_.sum(x, {1}, true)), Shape({2, 1}));
  EXPECT_EQ(shape(b_.mean(x, {1, 0}, true)), Shape({1, 1}));
  EXPECT_THAT(value(b_.sum(fed({0, 2}, {}), {0})), ElementsAre(0, 0));
}

TEST_F(BuilderMath, TheLargestAndTheSmallestOverDimensions) {
  const Output x = fed({2, 3}, {1, -2, 3, 4, 5, -6});
  EXPECT_THAT(value(b_.max(x, {0})), ElementsAre(4, 5, 3));
  EXPECT_THAT(value(b_.min(x, {1})), ElementsAre(-2, -6));
  EXPECT_THAT(value(b_.max(x)), ElementsAre(5));
  EXPECT_EQ(shape(b_.max(x)), Shape());
  EXPECT_EQ(shape(b_.min(x, {1}, true)), Shape({2, 1}));
  EXPECT_THAT(value(b_.max(fed({0, 2}, {}), {0})), ElementsAre(-INFINITY, -INFINITY));
  EXPECT_THAT(value(b_.min(fed({0}, {}))), ElementsAre(INFINITY));
  EXPECT_TRUE(std::isnan(value(b_.max(fed({3}, {1, std::nan(""), 2})))[0]));
  EXPECT_THAT(errorText([&] { b_.max(x, {2}); }), HasSubstr("axis 2 is none of float32[2, 3]"));
}

TEST_F(BuilderMath, WhereTheLargestIs) {
  const Output x = fed({2, 3}, {1, 3, 3, 9, -1, 0});
  EXPECT_THAT(value(b_.argMax(x, 1)), ElementsAre(1, 0)) << "the first of equal ones";
  EXPECT_THAT(value(b_.argMax(x, 0)), ElementsAre(1, 0, 0));
  EXPECT_EQ(graph_.spec(b_.argMax(x, 1)), (TensorSpec{DType::kInt64, {2}}));
}

TEST_F(BuilderMath, Casts) {
  const Output x = fed({5}, {1.75, -1.75, 300, -1e10, std::nan("")});
  EXPECT_THAT(value(b_.cast(x, DType::kInt32)), ElementsAre(1, -1, 300, INT32_MIN, 0));
  EXPECT_THAT(value(b_.cast(x, DType::kUInt8)), ElementsAre(1, 0, 255, 0, 0));
  EXPECT_EQ(graph_.spec(b_.cast(x, DType::kInt64)).dtype, DType::kInt64);
}

}  // namespace
}  // namespace dtf::graph
