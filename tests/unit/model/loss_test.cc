#include "common/model/loss.h"

#include <gtest/gtest.h>

namespace dtf::model {
namespace {

TEST(Loss, IsNamedAsTheFileDoes) {
  EXPECT_EQ(nameOf(Loss::kSoftmaxCrossEntropy), "softmax_cross_entropy");
  EXPECT_EQ(nameOf(Loss::kMse), "mse");
  EXPECT_EQ(nameOf(Loss::kSigmoidCrossEntropy), "sigmoid_cross_entropy");
}

}  // namespace
}  // namespace dtf::model
