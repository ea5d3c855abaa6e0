// That fused operations compute the right numbers is tested by compiled_step_test and the device
// suite. Here: what is fused, and what must not be.

#include "common/runtime/fusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string_view>

#include "common/graph/autodiff.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/runtime/cpu_kernels.h"
#include "tests/unit/runtime/models.h"

namespace dtf::runtime {
namespace {

using graph::Output;
using testing::Classifier;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::makeClassifier;
using ::testing::Not;

class FusionTest : public ::testing::Test {
 protected:
  FusionTest() { registerCpuKernels(kernels_); }

  std::vector<std::string> fusedOps(const graph::Graph& graph, std::vector<Output> fetches) {
    step_ = lower(graph, fetches);
    fuse(step_, kernels_, DeviceType::kCpu);
    std::vector<std::string> ops;
    for (const Operation& operation : step_.operations) ops.push_back(operation.op);
    return ops;
  }

  Random random_{1};
  KernelTable kernels_;
  LoweredStep step_;
};

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

// A convolutional layer: its tensors, and the gradients of filter and bias.
struct Layer {
  explicit Layer(int64_t window = 2, int64_t channels = 5) {
    graph::Builder b(graph);
    const Output x = b.placeholder("x", DType::kFloat32, {2, 20, 20, channels});
    const Output filter = b.variable("filter", {3, 3, channels, 4}), bias = b.variable("bias", {4});
    relu = b.relu(b.biasAdd(b.conv2D(x, filter), bias));
    pooled = b.maxPool(relu, {{window, 2}, {window, 2}});
    loss = b.mean(pooled.y);
    gradients = graph::addGradients(graph, loss, std::array{filter, bias});
  }
  graph::Graph graph{graph::standardOps()};
  Output relu, loss;
  graph::Builder::MaxPool pooled;
  std::vector<Output> gradients;
};

TEST_F(FusionTest, JoinsTheEndOfAConvolutionalLayer) {
  const Layer layer;
  std::vector<Output> fetches = layer.gradients;
  fetches.push_back(layer.loss);
  EXPECT_THAT(fusedOps(layer.graph, fetches),
              ::testing::UnorderedElementsAre("Conv2D", "_FusedBiasReluMaxPool", "Mean",
                                              "_FusedBiasReluMaxPoolGrad", "Conv2DBackpropFilter"));
}

TEST_F(FusionTest, JoinsALayerThatIsNotTrained) {
  const Layer layer;
  EXPECT_THAT(fusedOps(layer.graph, {layer.pooled.y}),
              ElementsAre("Conv2D", "_FusedBiasReluMaxPool"));
  EXPECT_THAT(fusedOps(layer.graph, {layer.gradients[0]}),
              ::testing::UnorderedElementsAre("Conv2D", "_FusedBiasReluMaxPool",
                                              "_FusedBiasReluMaxPoolGrad", "Conv2DBackpropFilter"))
      << "without the bias's gradient";
}

TEST_F(FusionTest, JoinsAFirstLayerWithItsConvolution) {
  const Layer layer(2, 4);
  std::vector<Output> fetches = layer.gradients;
  fetches.push_back(layer.loss);
  EXPECT_THAT(fusedOps(layer.graph, fetches),
              ::testing::UnorderedElementsAre("_FusedConvBiasReluMaxPool", "Mean",
                                              "_FusedConvBiasReluMaxPoolGrad"));
  EXPECT_THAT(fusedOps(layer.graph, {layer.gradients[0]}),
              ElementsAre("_FusedConvBiasReluMaxPool", "_FusedConvBiasReluMaxPoolGrad"));
}

TEST_F(FusionTest, KeepsWhatGoesBackIntoAFirstLayerWhereTheImageWantsItToo) {
  Layer layer(2, 4);
  const Output x{layer.graph.find("x")->id}, filter{layer.graph.find("filter")->id};
  EXPECT_THAT(
      fusedOps(layer.graph, graph::addGradients(layer.graph, layer.loss, std::array{x, filter})),
      ::testing::UnorderedElementsAre("_FusedConvBiasReluMaxPool", "_FusedBiasReluMaxPoolGrad",
                                      "Conv2DBackpropInput", "Conv2DBackpropFilter"));
}

TEST_F(FusionTest, KeepsALayerOfWhichMoreIsWanted) {
  Layer fetched;
  EXPECT_THAT(fusedOps(fetched.graph, {fetched.pooled.y, fetched.relu}), Contains("MaxPool"));
  Layer read;
  const Output also = graph::Builder(read.graph).mean(read.relu);
  EXPECT_THAT(fusedOps(read.graph, {read.pooled.y, also}), Contains("MaxPool"));
  const Layer wide(16);
  EXPECT_THAT(fusedOps(wide.graph, {wide.pooled.y}), Contains("MaxPool")) << "no byte is left";
}

// The kernel would take the rows of one shape and the columns of the other.
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

TEST_F(FusionTest, KeepsABiasOfOtherChannels) {
  graph::Graph graph(graph::standardOps());
  graph::Builder b(graph);
  const Output x = b.placeholder("x", DType::kFloat32, {2, 64}), bias = b.variable("bias", {64});
  const Output image = b.reshape(b.relu(b.biasAdd(x, bias)), {2, 4, 4, 4});
  EXPECT_THAT(fusedOps(graph, {b.maxPool(image, {{2, 2}, {2, 2}}).y}),
              ElementsAre("BiasAdd", "Relu", "MaxPool"));
}

}  // namespace
}  // namespace dtf::runtime
