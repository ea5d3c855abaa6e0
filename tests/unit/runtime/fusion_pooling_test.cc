// The end of a convolutional layer: bias, relu and pooling as one operation.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/unit/runtime/fusion_fixture.h"

namespace dtf::runtime {
namespace {

using graph::Output;
using ::testing::Contains;
using ::testing::ElementsAre;

class FusionPooling : public FusionTest {};

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

TEST_F(FusionPooling, JoinsTheEndOfAConvolutionalLayer) {
  const Layer layer;
  std::vector<Output> fetches = layer.gradients;
  fetches.push_back(layer.loss);
  EXPECT_THAT(fusedOps(layer.graph, fetches),
              ::testing::UnorderedElementsAre("Conv2D", "_FusedBiasReluMaxPool", "Mean",
                                              "_FusedBiasReluMaxPoolGrad", "Conv2DBackpropFilter"));
}

TEST_F(FusionPooling, JoinsALayerThatIsNotTrained) {
  const Layer layer;
  EXPECT_THAT(fusedOps(layer.graph, {layer.pooled.y}),
              ElementsAre("Conv2D", "_FusedBiasReluMaxPool"));
  EXPECT_THAT(fusedOps(layer.graph, {layer.gradients[0]}),
              ::testing::UnorderedElementsAre("Conv2D", "_FusedBiasReluMaxPool",
                                              "_FusedBiasReluMaxPoolGrad", "Conv2DBackpropFilter"))
      << "without the bias's gradient";
}

TEST_F(FusionPooling, JoinsAFirstLayerWithItsConvolution) {
  const Layer layer(2, 4);
  std::vector<Output> fetches = layer.gradients;
  fetches.push_back(layer.loss);
  EXPECT_THAT(fusedOps(layer.graph, fetches),
              ::testing::UnorderedElementsAre("_FusedConvBiasReluMaxPool", "Mean",
                                              "_FusedConvBiasReluMaxPoolGrad"));
  EXPECT_THAT(fusedOps(layer.graph, {layer.gradients[0]}),
              ElementsAre("_FusedConvBiasReluMaxPool", "_FusedConvBiasReluMaxPoolGrad"));
}

TEST_F(FusionPooling, KeepsWhatGoesBackIntoAFirstLayerWhereTheImageWantsItToo) {
  Layer layer(2, 4);
  const Output x{layer.graph.find("x")->id}, filter{layer.graph.find("filter")->id};
  EXPECT_THAT(
      fusedOps(layer.graph, graph::addGradients(layer.graph, layer.loss, std::array{x, filter})),
      ::testing::UnorderedElementsAre("_FusedConvBiasReluMaxPool", "_FusedBiasReluMaxPoolGrad",
                                      "Conv2DBackpropInput", "Conv2DBackpropFilter"));
}

TEST_F(FusionPooling, KeepsALayerOfWhichMoreIsWanted) {
  Layer fetched;
  EXPECT_THAT(fusedOps(fetched.graph, {fetched.pooled.y, fetched.relu}), Contains("MaxPool"));
  Layer read;
  const Output also = graph::Builder(read.graph).mean(read.relu);
  EXPECT_THAT(fusedOps(read.graph, {read.pooled.y, also}), Contains("MaxPool"));
  const Layer wide(16);
  EXPECT_THAT(fusedOps(wide.graph, {wide.pooled.y}), Contains("MaxPool")) << "no byte is left";
}

TEST_F(FusionPooling, KeepsABiasOfOtherChannels) {
  graph::Graph graph(graph::standardOps());
  graph::Builder b(graph);
  const Output x = b.placeholder("x", DType::kFloat32, {2, 64}), bias = b.variable("bias", {64});
  const Output image = b.reshape(b.relu(b.biasAdd(x, bias)), {2, 4, 4, 4});
  EXPECT_THAT(fusedOps(graph, {b.maxPool(image, {{2, 2}, {2, 2}}).y}),
              ElementsAre("BiasAdd", "Relu", "MaxPool"));
}

}  // namespace
}  // namespace dtf::runtime
