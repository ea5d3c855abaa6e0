// Which operations are fused, and which must not be. compiled_step_test and the device suite test
// the results.

#include "common/runtime/fusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "tests/unit/runtime/fusion_fixture.h"

namespace dtf::runtime {
namespace {

using graph::Output;
using testing::Classifier;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::makeClassifier;
using ::testing::Not;

TEST_F(FusionTest, MakesSoftmaxRegressionOneOperation) {
  const Classifier model = makeClassifier(random_, {.batch = 5, .inputs = 6});
  EXPECT_THAT(fusedOps(model.graph, {model.loss, model.accuracy}), ElementsAre("_FusedSoftmax"));
  const Operation& fused = step_.operations[0];
  EXPECT_EQ(fused.input_specs[0].dtype, DType::kUInt8);
  EXPECT_EQ(fused.outputs, (std::vector<Output>{model.loss, model.accuracy, model.gradients[0],
                                                model.gradients[1]}));
  EXPECT_EQ(fused.attributeOr<double>("gradient_scale", 0), 1.0f / 5);
}

TEST_F(FusionTest, MakesEvaluationOneOperation) {
  const Classifier model = makeClassifier(random_, {.batch = 5, .inputs = 6, .gradients = false});
  EXPECT_THAT(fusedOps(model.graph, {model.loss, model.accuracy}), ElementsAre("_FusedSoftmax"));
}

TEST_F(FusionTest, HandsTheGradientToTheLayerBelow) {
  const Classifier model = makeClassifier(random_, {.batch = 5, .inputs = 6, .hidden = {7}});
  EXPECT_THAT(fusedOps(model.graph, {model.loss}),
              ElementsAre("Normalise", "MatMul", "BiasAdd", "Relu", "_FusedSoftmax", "MatMul",
                          "ReluGrad", "BiasAddGrad", "MatMul"));
}

TEST_F(FusionTest, KeepsFetchedLogits) {
  const Classifier model = makeClassifier(random_, {.batch = 5, .inputs = 6});
  EXPECT_THAT(fusedOps(model.graph, {model.loss, model.logits}), Not(Contains("_FusedSoftmax")));
}

TEST_F(FusionTest, KeepsImagesThatAnotherOperationReads) {
  Classifier model = makeClassifier(random_, {.batch = 5, .inputs = 6});
  const Output floats{model.graph.find("Normalise")->id};
  const Output mean = graph::Builder(model.graph).mean(floats);
  EXPECT_THAT(fusedOps(model.graph, {model.loss, mean}),
              ::testing::UnorderedElementsAre("Normalise", "_FusedSoftmax", "Mean"));
}

TEST_F(FusionTest, LeavesManyClassesToTheGeneralKernels) {
  const Classifier model = makeClassifier(random_, {.batch = 5, .inputs = 6, .classes = 17});
  EXPECT_THAT(fusedOps(model.graph, {model.loss}), Not(Contains("_FusedSoftmax")));
}

TEST_F(FusionTest, LeavesADeviceWithoutTheKernelAlone) {
  const Classifier model = makeClassifier(random_, {.batch = 5, .inputs = 6});
  LoweredStep step = lower(model.graph, std::vector{model.loss});
  const size_t before = step.operations.size();
  fuse(step, kernels_, DeviceType::kGpu);
  EXPECT_EQ(step.operations.size(), before);
}

// The fused kernel would take the rows of one shape and the columns of the other.
TEST_F(FusionTest, KeepsASoftmaxOfWhatIsReshapedOnItsWay) {
  for (const char* where : {"nowhere", "before the bias", "before the softmax"}) {
    SCOPED_TRACE(where);
    graph::Graph graph(graph::standardOps());
    graph::Builder b(graph);
    const bool early = std::string_view(where) == "before the bias";
    const bool late = std::string_view(where) == "before the softmax";
    const int64_t rows = early || late ? 4 : 2;
    const Output x = b.placeholder("x", DType::kFloat32, {2, 3});
    const Output labels = b.placeholder("labels", DType::kInt32, {rows});
    const Output weights = b.variable("w", {3, 4}), bias = b.variable("b", {early ? 2 : 4});
    Output logits = b.matMul(x, weights);
    if (early) logits = b.reshape(logits, {4, 2});
    logits = b.biasAdd(logits, bias);
    if (late) logits = b.reshape(logits, {4, 2});
    const auto ops = fusedOps(graph, {b.mean(b.sparseSoftmaxCrossEntropy(logits, labels).loss)});
    if (early || late)
      EXPECT_THAT(ops, Not(Contains("_FusedSoftmax")));
    else
      EXPECT_THAT(ops, ElementsAre("_FusedSoftmax"));
  }
}

}  // namespace
}  // namespace dtf::runtime
