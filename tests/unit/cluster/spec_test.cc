#include "common/cluster/spec.h"

#include <gtest/gtest.h>

namespace dtf::cluster {
namespace {

TEST(Spec, NamesActivationsAndLossesAsTheFileDoes) {
  EXPECT_EQ(nameOf(Activation::kNone), "none");
  EXPECT_EQ(nameOf(Activation::kRelu), "relu");
  EXPECT_EQ(nameOf(Activation::kSigmoid), "sigmoid");
  EXPECT_EQ(nameOf(Activation::kTanh), "tanh");
  EXPECT_EQ(nameOf(Loss::kSoftmaxCrossEntropy), "softmax_cross_entropy");
  EXPECT_EQ(nameOf(Loss::kMse), "mse");
  EXPECT_EQ(nameOf(Loss::kSigmoidCrossEntropy), "sigmoid_cross_entropy");
}

TEST(Spec, FindsAnActivationByItsName) {
  EXPECT_EQ(activationOf("tanh"), Activation::kTanh);
  EXPECT_EQ(activationOf("none"), Activation::kNone);
  EXPECT_EQ(activationOf("Relu"), std::nullopt);
  EXPECT_EQ(activationOf(""), std::nullopt);
  EXPECT_EQ(activationOf("none|relu"), std::nullopt);
}

}  // namespace
}  // namespace dtf::cluster
