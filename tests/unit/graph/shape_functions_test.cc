#include "common/graph/shape_functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/graph/error_text.h"

namespace dtf::graph {
namespace {

using ::testing::ElementsAre;
using testing::errorText;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TensorSpec spec(DType dtype, Shape shape) {
  return {dtype, std::move(shape)};
}
std::string broadcastRefusal(const Shape& a, const Shape& b) {
  return errorText([&] { broadcast(a, "a", b, "b"); });
}

TEST(ShapeFunctions, ATextHasTypeAndDimensions) {
  EXPECT_EQ(specText(floats({100, 784})), "float32[100, 784]");
  EXPECT_EQ(specText(spec(DType::kUInt8, {})), "uint8[]");
}

TEST(ShapeFunctions, ARefusalNamesTheInputAndItsSpec) {
  const TensorSpec matrix = floats({4, 3}), bytes = spec(DType::kUInt8, {4});
  EXPECT_EQ(errorText([&] { wantFloat(bytes, "x"); }), "x uint8[4] must be float32");
  EXPECT_EQ(errorText([&] { wantLabels(floats({4}), "labels"); }),
            "labels float32[4] must be uint8, int32 or int64");
  EXPECT_EQ(errorText([&] {
              wantLabels(spec(DType::kInt32, {4, 1}), "labels");
            }),
            "labels int32[4, 1] must have 1 dimension(s)");
  EXPECT_EQ(errorText([&] { wantRank(matrix, 4, "x"); }),
            "x float32[4, 3] must have 4 dimension(s)");
  EXPECT_EQ(errorText([&] { wantRankAtLeast(matrix, 3, "x"); }),
            "x float32[4, 3] must have at least 3 dimension(s)");
  EXPECT_EQ(errorText([&] { wantSame(matrix, "a", bytes, "b"); }),
            "a float32[4, 3] and b uint8[4] must be the same");
  EXPECT_THAT(errorText([&] { wantSameDim(matrix, 1, "a", bytes, 0, "b"); }),
              HasSubstr("dimension 1 of a is 3, dimension 0 of b is 4"));
}

TEST(ShapeFunctions, WhatFitsIsNotRefused) {
  const TensorSpec matrix = floats({4, 3}), bytes = spec(DType::kUInt8, {4});
  EXPECT_THAT(errorText([&] {
                wantFloat(matrix, "x");
                wantLabels(bytes, "x");
                wantRank(matrix, 2, "x");
                wantRankAtLeast(matrix, 2, "x");
                wantSame(matrix, "a", matrix, "b");
                wantSameDim(matrix, 0, "a", bytes, 0, "b");
              }),
              IsEmpty());
}

TEST(ShapeFunctions, BroadcastingRepeatsOnesFromTheLastDimensionOn) {
  const auto both = [](const Shape& a, const Shape& b) {
    EXPECT_EQ(broadcast(a, "a", b, "b"), broadcast(b, "b", a, "a"));
    return broadcast(a, "a", b, "b");
  };
  EXPECT_EQ(both({2, 1}, {3}), Shape({2, 3}));
  EXPECT_EQ(both({}, {5, 4}), Shape({5, 4}));
  EXPECT_EQ(both({1, 4}, {7, 1, 1}), Shape({7, 1, 4}));
  EXPECT_EQ(both({1}, {0}), Shape({0})) << "nothing is repeated no times";
  EXPECT_EQ(both({}, {}), Shape());
}

TEST(ShapeFunctions, DimensionsThatDifferAndAreNotOneDoNotBroadcast) {
  EXPECT_THAT(broadcastRefusal({2, 3}, {4}), HasSubstr("a [2, 3] and b [4] don't fit"));
  EXPECT_THAT(broadcastRefusal({3, 2}, {3, 1, 4}), HasSubstr("don't fit")) << "2 meets 4";
  EXPECT_THAT(broadcastRefusal({0}, {2}), HasSubstr("don't fit"));
}

TEST(ShapeFunctions, GatheringPutsTheIndicesDimensionsBeforeThoseOfARow) {
  EXPECT_EQ(gathered(floats({10, 3, 2}), spec(DType::kInt64, {4, 5})), floats({4, 5, 3, 2}));
  EXPECT_EQ(gathered(floats({10}), spec(DType::kUInt8, {})), floats({}));
  EXPECT_THROW(gathered(floats({}), spec(DType::kInt64, {4})), Error);
  EXPECT_THROW(gathered(spec(DType::kInt32, {10, 3}), spec(DType::kInt64, {4})), Error);
}

TEST(ShapeFunctions, OutputsFollowFromInputsAndAttributes) {
  const std::vector<TensorSpec> pair = {floats({2, 1}), floats({2, 3})};
  EXPECT_THAT(broadcastElementwise(pair, {}), ElementsAre(floats({2, 3})));
  EXPECT_THROW(elementwise(pair, {}), Error);
  EXPECT_THAT(elementwise(std::span(pair).first(1), {}), ElementsAre(floats({2, 1})));
  EXPECT_THAT(passThrough(pair, {}), ElementsAre(floats({2, 1})));
  EXPECT_THAT(noOutput(pair, {}), IsEmpty());
  const Attributes attributes = {{"dtype", DType::kInt32}, {"shape", Shape{7}}};
  EXPECT_THAT(declared({}, attributes), ElementsAre(spec(DType::kInt32, {7})));
  EXPECT_THAT(declaredFloat({}, attributes), ElementsAre(floats({7})));
}

}  // namespace
}  // namespace dtf::graph
