// Values worked out by hand, and refusals, of arithmetic that broadcasts, reductions and random numbers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "tests/unit/graph/error_text.h"
#include "tests/unit/graph/reference_interpreter.h"

namespace dtf::graph {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using testing::errorText;
using testing::evaluate;
using testing::Feeds;
using ::testing::HasSubstr;
using testing::Values;

class MathOps : public ::testing::Test {
 protected:
  Output fed(Shape shape, Values values, DType dtype = DType::kFloat32) {
    const Output input = b_.placeholder(graph_.uniqueName("fed"), dtype, std::move(shape));
    feeds_[input] = std::move(values);
    return input;
  }
  Values value(Output output) { return evaluate(graph_, feeds_, output); }
  Shape shape(Output output) { return graph_.spec(output).shape; }

  Graph graph_{standardOps()};
  Builder b_{graph_};
  Feeds feeds_;
};

TEST_F(MathOps, ByElement) {
  const Output x = fed({3}, {1, 4, 16}), y = fed({3}, {2, -4, 16});
  EXPECT_THAT(value(b_.div(x, y)), ElementsAre(0.5, -1, 1));
  EXPECT_THAT(value(b_.maximum(x, y)), ElementsAre(2, 4, 16));
  EXPECT_THAT(value(b_.minimum(x, y)), ElementsAre(1, -4, 16));
  EXPECT_THAT(value(b_.sqrt(x)), ElementsAre(1, 2, 4));
  EXPECT_THAT(value(b_.rsqrt(x)), ElementsAre(1, 0.5, 0.25));
  EXPECT_THAT(value(b_.log(b_.exp(fed({1}, {3})))), ElementsAre(3));
}

TEST_F(MathOps, Powers) {
  const Output x = fed({6}, {2, 4, 0, -2, -8, 9}), y = fed({6}, {3, 0.5, 0, -2, 3, -0.5});
  EXPECT_THAT(value(b_.pow(x, y)), ElementsAre(8, 2, 1, 0.25, -512, DoubleEq(1.0 / 3)));
  EXPECT_THAT(value(b_.pow(fed({2, 1}, {2, 3}), fed({2}, {1, 2}))), ElementsAre(2, 4, 3, 9));
  EXPECT_TRUE(std::isnan(value(b_.pow(fed({}, {-1}), fed({}, {0.5})))[0]));
  EXPECT_THAT(errorText([&] {
                b_.pow(x, fed({4}, {1, 2, 3, 4}));
              }),
              HasSubstr("a [6] and b [4] don't fit"));
}

TEST_F(MathOps, OperandsAreRepeatedAsNumPyDoes) {
  const Output rows = fed({2, 1}, {10, 20}), columns = fed({3}, {1, 2, 3});
  EXPECT_EQ(shape(b_.add(rows, columns)), Shape({2, 3}));
  EXPECT_THAT(value(b_.add(rows, columns)), ElementsAre(11, 12, 13, 21, 22, 23));
  EXPECT_THAT(value(b_.sub(columns, fed({}, {1}))), ElementsAre(0, 1, 2));
  EXPECT_THAT(value(b_.less(columns, fed({1}, {2}))), ElementsAre(1, 0, 0));
  EXPECT_EQ(shape(b_.mul(fed({0, 1}, {}), columns)), Shape({0, 3}));
  EXPECT_THAT(value(b_.broadcastTo(rows, {2, 2})), ElementsAre(10, 10, 20, 20));
}

TEST_F(MathOps, SumsAndMeansOverDimensions) {
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

TEST_F(MathOps, TheLargestAndTheSmallestOverDimensions) {
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

TEST_F(MathOps, WhereTheLargestIs) {
  const Output x = fed({2, 3}, {1, 3, 3, 9, -1, 0});
  EXPECT_THAT(value(b_.argMax(x, 1)), ElementsAre(1, 0)) << "the first of equal ones";
  EXPECT_THAT(value(b_.argMax(x, 0)), ElementsAre(1, 0, 0));
  EXPECT_EQ(graph_.spec(b_.argMax(x, 1)), (TensorSpec{DType::kInt64, {2}}));
}

TEST_F(MathOps, Casts) {
  const Output x = fed({5}, {1.75, -1.75, 300, -1e10, std::nan("")});
  EXPECT_THAT(value(b_.cast(x, DType::kInt32)), ElementsAre(1, -1, 300, INT32_MIN, 0));
  EXPECT_THAT(value(b_.cast(x, DType::kUInt8)), ElementsAre(1, 0, 255, 0, 0));
  EXPECT_EQ(graph_.spec(b_.cast(x, DType::kInt64)).dtype, DType::kInt64);
}

TEST_F(MathOps, RandomNumbersFollowFromSeedAndStream) {
  constexpr int64_t kMany = 10'000;
  const auto drawn = [&](double step, int64_t stream, bool normal) {
    const Output seed = fed({2}, {7, step}, DType::kInt64);
    return value(normal ? b_.randomNormal(seed, {kMany}, stream)
                        : b_.randomUniform(seed, {kMany}, stream));
  };
  const Values uniform = drawn(1, 0, false);
  EXPECT_EQ(uniform, drawn(1, 0, false));
  EXPECT_NE(uniform, drawn(2, 0, false));
  EXPECT_NE(uniform, drawn(1, 1, false));
  EXPECT_GT(std::set<double>(uniform.begin(), uniform.end()).size(), size_t{kMany} - 50);
  const auto momentsOf = [](const Values& values) {
    double sum = 0, squares = 0;
    for (const double value : values) sum += value, squares += value * value;
    const auto n = static_cast<double>(values.size());
    return std::pair{sum / n, squares / n};
  };
  // Within five standard deviations of what a fair draw gives.
  EXPECT_NEAR(momentsOf(uniform).first, 0.5, 5 * std::sqrt(1.0 / 12 / kMany));
  EXPECT_NEAR(momentsOf(drawn(1, 0, true)).first, 0, 5 / std::sqrt(kMany));
  EXPECT_NEAR(momentsOf(drawn(1, 0, true)).second, 1, 5 * std::sqrt(2.0 / kMany));
}

TEST_F(MathOps, Choices) {
  const Output a = fed({3}, {1, 2, 3}), b = fed({3}, {-1, std::nan(""), -3});
  const Output condition = fed({3}, {0, 1, 1}, DType::kUInt8);
  EXPECT_THAT(value(Output{b_.node("Select", {condition, a, b})}), ElementsAre(-1, 2, 3));
  EXPECT_THAT(errorText([&] {
                b_.node("Select", {a, a, b});
              }),
              HasSubstr("condition float32[3] and one of a's shape uint8[3] must be the same"));
}

TEST_F(MathOps, RefuseInWords) {
  const auto text = [](auto f) { return errorText(f); };
  const Output x = fed({2, 3}, Values(6)), four = fed({4}, Values(4));
  const Output whole = fed({2, 3}, Values(6), DType::kInt32);
  EXPECT_THAT(text([&] { b_.add(x, four); }), HasSubstr("a [2, 3] and b [4] don't fit"));
  EXPECT_THAT(text([&] { b_.div(x, whole); }), HasSubstr("b int32[2, 3] must be float32"));
  EXPECT_THAT(text([&] { b_.less(x, whole); }), HasSubstr("must be of one dtype"));
  EXPECT_THAT(text([&] { b_.sum(x, {2}); }), HasSubstr("axis 2 is none of float32[2, 3]"));
  EXPECT_THAT(text([&] { b_.mean(x, {1, 1}); }), HasSubstr("axis 1 is named twice"));
  EXPECT_THAT(text([&] { b_.argMax(x, -1); }), HasSubstr("axis -1 is none of"));
  EXPECT_THAT(text([&] { b_.argMax(fed({2, 0}, {}), 1); }), HasSubstr("no elements along axis 1"));
  EXPECT_THAT(text([&] { b_.broadcastTo(x, {3}); }), HasSubstr("can't be repeated to the shape"));
  EXPECT_THAT(text([&] { b_.randomUniform(four, {2}); }), HasSubstr("must be int64[2]"));
  EXPECT_THAT(text([&] {
                b_.randomNormal(fed({2}, {1, 2}, DType::kInt64), {2}, -1);
              }),
              HasSubstr("stream must be from 0 to 16777215"));
}

}  // namespace
}  // namespace dtf::graph
