// The ops on images.

#include <cmath>
#include <string>

#include "common/graph/autodiff.h"
#include "tests/conformance/device_case.h"
#include "tests/support/repetitions.h"

namespace dtf::runtime::testing {
namespace {

using graph::paddedSame;
using graph::Window;
using graph::WindowAxis;

// A convolution and its gradients, with a random image, filter and output gradient.
struct ConvolutionCase : Case {
  ConvolutionCase(Shape image, Shape filter, const Window& window, int64_t groups) {
    const Output x = floats(image, -1, 1), f = floats(filter, -1, 1);
    const Output y = b.conv2D(x, f, window, groups);
    const Output dy = floats(graph.spec(y).shape, -1, 1);
    fetches = {y, b.conv2DBackpropInput(image, f, dy, window, groups),
               b.conv2DBackpropFilter(x, filter, dy, window, groups)};
  }
  std::vector<Output> fetches;
};

void expectConvolution(DeviceUnderTest& device, const Shape& image, const Shape& filter,
                       const Window& window = {}, int64_t groups = 1, double tolerance = kSums) {
  SCOPED_TRACE(image.str() + " * " + filter.str());
  ConvolutionCase c(image, filter, window, groups);
  c.expect(device, c.fetches, tolerance);
}

WindowAxis randomAxis(Random& random, int64_t size, int64_t length) {
  const auto upTo = [&random](uint64_t most) {
    return static_cast<int64_t>(random.below(most + 1));
  };
  WindowAxis axis = {size, 1 + upTo(2), 1 + upTo(1), upTo(3), upTo(3)};
  if (random.below(3) == 0) axis = paddedSame({.size = size}, length);
  axis.after += std::max<int64_t>(0, axis.extent() - length - axis.before - axis.after);
  return axis;
}

TEST_P(DeviceSuite, ConvolvesAnyShape) {
  for (uint64_t seed = 0; seed < dtf::testing::repetitions(120u); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const auto from1 = [&random](uint64_t most) {
      return static_cast<int64_t>(1 + random.below(most));
    };
    const int64_t groups = random.below(3) == 0 ? from1(3) : 1;
    const int64_t channels = from1(random.below(2) == 0 ? 3 : 20);
    const int64_t out_channels = groups * from1(random.below(2) == 0 ? 3 : 35);
    const int64_t height = from1(9), width = from1(9), high = from1(5), wide = from1(5);
    const Window window = {randomAxis(random, high, height), randomAxis(random, wide, width)};
    expectConvolution(device_, {from1(3), height, width, channels * groups},
                      {high, wide, channels, out_channels}, window, groups);
  }
}

// Larger than a block of pixels; the image itself as a matrix. Some thousand terms of up to 16 may
// add up to nearly nothing: a float32 sum is then off by some units in the last place of its
// largest partial sum.
TEST_P(DeviceSuite, ConvolvesManyPixels) {
  const double long_sums = device_.long_sums;
  const Window same3 = paddedSame({{.size = 3}, {.size = 3}}, 30, 31);
  expectConvolution(device_, {4, 30, 31, 5}, {3, 3, 5, 8}, same3, 1, long_sums);
  expectConvolution(device_, {2, 30, 31, 40}, {3, 3, 40, 16}, same3, 1, long_sums);
  expectConvolution(device_, {3, 15, 16, 12}, {1, 1, 12, 40}, {}, 1, long_sums);
  expectConvolution(device_, {3, 15, 16, 12}, {1, 1, 6, 10}, {}, 2, long_sums);
  expectConvolution(device_, {3, 15, 16, 12}, {1, 1, 12, 7}, {{.stride = 2}, {.stride = 2}});
}

// The shapes of residual networks, for which a device may have special algorithms. Transforms such
// as Winograd's may cost some digits.
TEST_P(DeviceSuite, ConvolvesManyChannels) {
  constexpr double kTransformed = 2e-4;
  const Window same3 = paddedSame({{.size = 3}, {.size = 3}}, 13, 10);
  const Window same5 = paddedSame({{.size = 5}, {.size = 5}}, 9, 14);
  expectConvolution(device_, {2, 13, 10, 32}, {3, 3, 32, 48}, same3, 1, kTransformed);
  expectConvolution(device_, {3, 13, 10, 16}, {3, 3, 16, 16}, {}, 1, kTransformed);
  expectConvolution(device_, {2, 9, 14, 32}, {5, 5, 32, 16}, same5, 1, kTransformed);
  expectConvolution(device_, {1, 13, 10, 32}, {3, 3, 32, 32}, {{.stride = 2}, {.stride = 2}}, 1,
                    kTransformed);
}

TEST_P(DeviceSuite, ConvolvesNothing) {
  expectConvolution(device_, {0, 5, 5, 3}, {3, 3, 3, 4});
  expectConvolution(device_, {2, 5, 5, 0}, {3, 3, 0, 4});
}

TEST_P(DeviceSuite, Pools) {
  for (uint64_t seed = 0; seed < dtf::testing::repetitions(60u); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const auto axis = [&random](int64_t length) {
      WindowAxis made = {static_cast<int64_t>(1 + random.below(4)),
                         static_cast<int64_t>(1 + random.below(3))};
      if (made.size > length || random.below(2) == 0) made = paddedSame(made, length);
      return made;
    };
    const auto height = static_cast<int64_t>(1 + random.below(9));
    const auto width = static_cast<int64_t>(1 + random.below(9));
    const Window window = {axis(height), axis(width)};
    const Shape image = {2, height, width, static_cast<int64_t>(1 + random.below(40))};
    Case c;
    const Output x = c.floats(image);
    const auto max = c.b.maxPool(x, window);
    const Output average = c.b.avgPool(x, window);
    const Output dy = c.floats(c.graph.spec(average).shape);
    c.expect(device_,
             {max.y, c.b.maxPoolGrad(dy, max.argmax, image, window), average,
              c.b.avgPoolGrad(dy, image, window)},
             kElementwise);
  }
}

TEST_P(DeviceSuite, PoolsOverWholeImages) {
  Case c;
  const Output x = c.floats({2, 17, 18, 19});
  const Window whole = {{.size = 17}, {.size = 18}};
  const auto max = c.b.maxPool(x, whole);
  const Output dy = c.floats({2, 1, 1, 19});
  c.expect(device_,
           {max.y, c.b.maxPoolGrad(dy, max.argmax, {2, 17, 18, 19}, whole), c.b.globalAvgPool(x),
            c.b.avgPoolGrad(dy, {2, 17, 18, 19}, whole)},
           kSums);
}

// The end of a layer, where many maxima are 0; fused and separate.
TEST_P(DeviceSuite, EndsALayerInAPooling) {
  for (const int64_t channels : kSizes) {
    Case c;
    const Output x = c.floats({2, 6, 7, channels}), bias = c.floats({channels}, -4, 1);
    const Window window = {{.size = 3, .stride = 2, .before = 1}, {.size = 2, .stride = 2}};
    const Output y = c.b.maxPool(c.b.relu(c.b.biasAdd(x, bias)), window).y;
    const Output loss = c.b.mean(c.b.mul(y, c.floats(c.graph.spec(y).shape)));
    std::vector<Output> fetches = graph::addGradients(c.graph, loss, std::array{x, bias});
    fetches.push_back(y);
    c.expect(device_, fetches, kSums);
  }
}

// A first layer, also with images that don't fill the last group; fused and separate.
TEST_P(DeviceSuite, TrainsAFirstLayer) {
  for (const int64_t channels : {1, 3}) {
    for (const int64_t batch : {1, 7}) {
      Case c;
      const Output x = c.floats({batch, 33, 31, channels}, -1, 1);
      const Output f = c.floats({5, 3, channels, 20}, -0.3f, 0.3f), bias = c.floats({20}, -1, 1);
      const Window same = paddedSame({{.size = 5}, {.size = 3, .stride = 2}}, 33, 31);
      const Window half = {{2, 2}, {3, 2, 1, 1, 0}};
      const Output y = c.b.maxPool(c.b.relu(c.b.biasAdd(c.b.conv2D(x, f, same), bias)), half).y;
      const Output weights = c.floats(c.graph.spec(y).shape, -1, 1);
      const Output loss = c.b.mean(c.b.mul(y, weights));
      std::vector<Output> fetches = graph::addGradients(c.graph, loss, std::array{f, bias});
      fetches.push_back(y);
      c.expect(device_, fetches, kSums);
    }
  }
}

// The first of equal elements gets the gradient, as in TensorFlow.
TEST_P(DeviceSuite, TheFirstOfEqualsIsTheMaximum) {
  Case c;
  const Output x = c.b.relu(c.floats({2, 6, 6, 20}, -9, -1));
  const Window window = {{.size = 3, .stride = 2}, {.size = 3, .stride = 2}};
  const auto max = c.b.maxPool(x, window);
  const Output dy = c.floats({2, 2, 2, 20});
  c.expect(device_, {max.y, c.b.maxPoolGrad(dy, max.argmax, {2, 6, 6, 20}, window)}, kElementwise);
}

TEST_P(DeviceSuite, LetsNanThroughAMaximum) {
  Case c;
  const Output x = c.floats({1, 2, 2, 33});
  for (const size_t at : {0, 40, 131}) c.feeds[x][at] = std::nan("");
  const std::vector<Output> fetches = {c.b.maxPool(x, {{.size = 2}, {.size = 2}}).y};
  StepRunner runner(*device_.device, device_.kernels, c.graph, c.feeds, fetches);
  runner.run();
  for (size_t channel = 0; channel < 33; ++channel) {
    EXPECT_EQ(std::isnan(runner.fetch(0)[channel]), channel == 0 || channel == 7 || channel == 32);
  }
}

TEST_P(DeviceSuite, AddsBiasesToImages) {
  for (const int64_t channels : kSizes) {
    Case c;
    const Output x = c.floats({2, 3, 5, channels}), bias = c.floats({channels});
    c.expect(device_, {c.b.biasAdd(x, bias), c.b.biasAddGrad(x), c.b.relu(x)}, kSums);
  }
}

// Two convolutional layers and a dense one, with all gradients.
TEST_P(DeviceSuite, TrainsAConvolutionalNetwork) {
  Case c;
  const Output images = c.floats({6, 8, 8, 1}, 0, 1);
  const Output f1 = c.floats({5, 5, 1, 8}, -0.5f, 0.5f), b1 = c.floats({8}, -0.1f, 0.1f);
  const Output f2 = c.floats({3, 3, 8, 16}, -0.3f, 0.3f), b2 = c.floats({16}, -0.1f, 0.1f);
  const Output w = c.floats({64, 10}, -0.3f, 0.3f), b3 = c.floats({10}, -0.1f, 0.1f);
  const Output labels = c.integers(DType::kUInt8, {6}, 10);
  const Window half = {{.size = 2, .stride = 2}, {.size = 2, .stride = 2}};
  const auto layer = [&](Output x, Output f, Output bias, const Window& same) {
    return c.b.maxPool(c.b.relu(c.b.biasAdd(c.b.conv2D(x, f, same), bias)), half).y;
  };
  Output x = layer(images, f1, b1, paddedSame({{.size = 5}, {.size = 5}}, 8, 8));
  x = layer(x, f2, b2, paddedSame({{.size = 3}, {.size = 3}}, 4, 4));
  const Output logits = c.b.biasAdd(c.b.matMul(c.b.reshape(x, {6, 64}), w), b3);
  const Output loss = c.b.mean(c.b.sparseSoftmaxCrossEntropy(logits, labels).loss);
  const std::vector<Output> variables = {f1, b1, f2, b2, w, b3, images};
  std::vector<Output> fetches = graph::addGradients(c.graph, loss, variables);
  fetches.push_back(loss);
  c.expect(device_, fetches, kSums);
}

}  // namespace
}  // namespace dtf::runtime::testing
