// The reference against values worked out by hand: it must not only agree with itself.

#include "tests/unit/graph/reference_interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <stdexcept>

#include "common/graph/builder.h"
#include "common/graph/op_def.h"

namespace dtf::graph {
namespace {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using testing::evaluate;
using testing::Feeds;
using testing::Values;

class ReferenceInterpreter : public ::testing::Test {
 protected:
  Output fed(Shape shape, Values values, DType dtype = DType::kFloat32) {
    const Output input = b_.placeholder(graph_.uniqueName("fed"), dtype, std::move(shape));
    feeds_[input] = std::move(values);
    return input;
  }
  Values value(Output output) { return evaluate(graph_, feeds_, output); }

  Graph graph_{standardOps()};
  Builder b_{graph_};
  Feeds feeds_;
};

TEST_F(ReferenceInterpreter, DefinesEveryOpThatCanBeComputed) {
  const std::set<std::string_view> outside = {"Placeholder",
                                              "Variable",
                                              "_Recv",
                                              "_Pull",
                                              "ApplyGradient",
                                              "ApplySparseGradient",
                                              "NoOp",
                                              "_Send",
                                              "_Push",
                                              "_PushSparse",
                                              "ReadVariable",
                                              "FIFOQueue",
                                              "QueueEnqueue",
                                              "QueueEnqueueMany",
                                              "QueueDequeue",
                                              "QueueDequeueMany",
                                              "QueueSize",
                                              "QueueClose",
                                              "ApplyOptimizer",
                                              "ApplySparseOptimizer",
                                              "InitializeVariable",
                                              "IsVariableInitialized",
                                              "ClipByGlobalNorm",
                                              "SyncReplicasTicket",
                                              "AccumulatorApplyGradient",
                                              "SparseAccumulatorApplyGradient",
                                              "SyncReplicasArrive",
                                              "ApplyAccumulated",
                                              "SyncReplicasFinish",
                                              "SyncReplicasPause",
                                              "SyncReplicasResume"};
  for (const std::string_view op : standardOps().names()) {
    EXPECT_NE(testing::isDefined(op), outside.contains(op)) << op;
  }
}

TEST_F(ReferenceInterpreter, Products) {
  const Output a = fed({2, 3}, {1, 2, 3, 4, 5, 6});
  const Output c = fed({3, 2}, {1, 0, 0, 1, 1, 1});
  EXPECT_THAT(value(b_.matMul(a, c)), ElementsAre(4, 5, 10, 11));
  EXPECT_THAT(value(b_.matMul(c, a, true, true)), ElementsAre(4, 10, 5, 11));
  EXPECT_THAT(value(b_.mulRows(fed({2}, {10, -1}), a)), ElementsAre(10, 20, 30, -4, -5, -6));
}

TEST_F(ReferenceInterpreter, SumsAndMeans) {
  const Output x = fed({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(value(b_.biasAdd(x, fed({2}, {10, 20}))), ElementsAre(11, 22, 13, 24));
  EXPECT_THAT(value(b_.biasAddGrad(x)), ElementsAre(4, 6));
  EXPECT_THAT(value(b_.mean(x)), ElementsAre(2.5));
  EXPECT_THAT(value(b_.meanGrad(fed({}, {8}), {2, 2})), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(value(b_.addN({x, x, x})), ElementsAre(3, 6, 9, 12));
}

TEST_F(ReferenceInterpreter, ElementByElement) {
  const Output a = fed({3}, {1, -2, 3});
  const Output c = fed({3}, {4, 5, 6});
  EXPECT_THAT(value(b_.sub(a, c)), ElementsAre(-3, -7, -3));
  EXPECT_THAT(value(b_.mul(a, c)), ElementsAre(4, -10, 18));
  EXPECT_THAT(value(b_.squaredDifference(a, c)), ElementsAre(9, 49, 9));
  EXPECT_THAT(value(b_.scale(a, 2)), ElementsAre(2, -4, 6));
  EXPECT_THAT(value(Output{b_.node("ZerosLike", {a})}), ElementsAre(0, 0, 0));
  EXPECT_THAT(value(b_.constant({2}, 7)), ElementsAre(7, 7));
  EXPECT_THAT(value(b_.normalise(fed({2}, {0, 255}, DType::kUInt8), 1.0 / 255)), ElementsAre(0, 1));
  EXPECT_THAT(value(b_.relu(a)), ElementsAre(1, 0, 3));
  EXPECT_THAT(value(b_.reluGrad(c, b_.relu(a))), ElementsAre(4, 0, 6));
  EXPECT_THAT(value(b_.sigmoid(fed({1}, {std::log(3)}))), ElementsAre(DoubleEq(0.75)));
  EXPECT_THAT(value(b_.sigmoidGrad(fed({1}, {2}), fed({1}, {0.75}))), ElementsAre(0.375));
  EXPECT_THAT(value(b_.tanhGrad(fed({1}, {2}), fed({1}, {0.5}))), ElementsAre(1.5));
}

TEST_F(ReferenceInterpreter, LossesAndMetrics) {
  const Output logits = fed({2, 2}, {0, std::log(3), 1000, 1000});
  const Output labels = fed({2}, {1, 0}, DType::kUInt8);
  const auto entropy = b_.sparseSoftmaxCrossEntropy(logits, labels);
  const auto near = [](double x) { return DoubleNear(x, 1e-12); };
  EXPECT_THAT(value(b_.softmax(logits)), ElementsAre(near(.25), near(.75), near(.5), near(.5)));
  EXPECT_THAT(value(entropy.loss), ElementsAre(near(std::log(4.0 / 3)), near(std::log(2))));
  EXPECT_THAT(value(entropy.backprop), ElementsAre(near(.25), near(-.25), near(-.5), near(.5)));
  EXPECT_THAT(value(b_.softmaxGrad(fed({1, 2}, {1, 0}), fed({1, 2}, {.25, .75}))),
              ElementsAre(.1875, -.1875));
  EXPECT_THAT(value(b_.sigmoidCrossEntropy(fed({2}, {0, 800}), fed({2}, {1, 0}))),
              ElementsAre(near(std::log(2)), near(800)));
  EXPECT_THAT(value(b_.sigmoidCrossEntropyGrad(fed({1}, {2}), fed({1}, {0}), fed({1}, {1}))),
              ElementsAre(-1));
  EXPECT_THAT(value(b_.accuracy(logits, labels)), ElementsAre(1)) << "the lowest of equals counts";
  EXPECT_THAT(value(b_.oneHot(labels, 3)), ElementsAre(0, 1, 0, 1, 0, 0));
}

TEST_F(ReferenceInterpreter, DropoutKeepsTheKeysShareAndScalesIt) {
  const Output key = fed({2}, {5, 6}, DType::kInt64);
  const Output x = fed({4096}, Values(4096, 3));
  const Values y = value(b_.dropout(x, key, 0.25, 1));
  const auto kept = std::count(y.begin(), y.end(), 4.0);
  EXPECT_EQ(kept + std::count(y.begin(), y.end(), 0.0), 4096);
  EXPECT_NEAR(static_cast<double>(kept), 3072, 5 * std::sqrt(4096 * 0.25 * 0.75));
  EXPECT_EQ(value(b_.dropout(x, key, 0, 1)), value(x));
  EXPECT_NE(value(b_.dropout(x, key, 0.25, 2)), y) << "each layer has a mask of its own";
}

TEST_F(ReferenceInterpreter, RefusesWhatItCannotKnow) {
  const Output open = b_.placeholder("open", DType::kFloat32, {2});
  EXPECT_THROW(value(b_.relu(open)), std::invalid_argument);
  EXPECT_THROW(value(b_.oneHot(fed({1}, {3}, DType::kInt32), 3)), std::invalid_argument);
  feeds_[open] = {1};
  EXPECT_THROW(value(open), std::invalid_argument);
}

}  // namespace
}  // namespace dtf::graph
