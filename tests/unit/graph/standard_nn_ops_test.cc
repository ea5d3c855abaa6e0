// Errors of activations, losses and dropout.

#include <cmath>

#include "tests/unit/graph/op_fixture.h"

namespace dtf::graph {
namespace {

using testing::errorText;
using ::testing::HasSubstr;

class StandardNnOps : public testing::OpTest {};

TEST_F(StandardNnOps, RefuseInWords) {
  const Output x = open({4, 3});
  EXPECT_THAT(errorText([&] { b_.huber(x, -1); }), HasSubstr("delta must be above 0"));
  EXPECT_THAT(errorText([&] { b_.softmaxCrossEntropy(x, open({3})); }),
              HasSubstr("must be the same"));
}

TEST_F(StandardNnOps, RefuseWhatDoesNotFit) {
  const Output x = open({4, 3}), v = open({4}), u8 = open({4}, DType::kUInt8);
  EXPECT_THROW(b_.relu(u8), Error);
  EXPECT_THROW(b_.softmax(b_.mean(x)), Error);
  EXPECT_THROW(b_.sparseSoftmaxCrossEntropy(x, v), Error);
  EXPECT_THROW(b_.sparseSoftmaxCrossEntropy(x, open({5}, DType::kInt32)), Error);
  EXPECT_THROW(b_.sigmoidCrossEntropy(x, v), Error);
  EXPECT_THROW(b_.oneHot(u8, 0), Error);
  EXPECT_THROW(b_.accuracy(v, u8), Error);
}

TEST_F(StandardNnOps, ADropoutHasAKeyARateBelowOneAndALayer) {
  const Output x = open({4, 3}), key = open({2}, DType::kInt64);
  EXPECT_EQ(graph_.spec(b_.dropout(x, key, 0, 0)), graph_.spec(x));
  EXPECT_THROW(b_.dropout(open({4}, DType::kUInt8), key, 0.5, 0), Error);
  EXPECT_THROW(b_.dropout(x, open({4}), 0.5, 0), Error);
  EXPECT_THROW(b_.dropout(x, open({3}, DType::kInt64), 0.5, 0), Error);
  for (const double rate : {1.0, -0.1, std::nan("")})
    EXPECT_THROW(b_.dropout(x, key, rate, 0), Error) << rate;
  for (const int64_t layer : {int64_t{-1}, int64_t{1} << 24})
    EXPECT_THROW(b_.dropout(x, key, 0.5, layer), Error) << layer;
  EXPECT_THROW(b_.dropout(open({int64_t{1} << 35}), key, 0.5, 0), Error);
}

}  // namespace
}  // namespace dtf::graph
