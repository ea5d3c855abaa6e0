// A residual network's blocks: fused kernels, and precisions other than float32.

#include <gmock/gmock.h>

#include <cmath>

#include "common/graph/autodiff.h"
#include "common/runtime/fusion.h"
#include "common/runtime/mixed_precision.h"
#include "tests/conformance/device_case.h"
#include "tests/unit/graph/reference_interpreter.h"

namespace dtf::runtime::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::Not;

// The length of the difference, relative to the length of `expected`.
double distance(const Values& actual, const Values& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double difference = 0, length = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    length += expected[i] * expected[i];
  }
  return std::sqrt(difference / length);
}

// Images through two residual blocks, the first with a projection, to a loss; all gradients.
struct ResidualNetwork : Case {
  ResidualNetwork() {
    Output x = floats({6, 7, 6, 8}, 0, 1);
    variables.push_back(x);
    x = block(x, 8, 16, true);
    x = block(x, 16, 16, false);
    x = b.avgPool(x, {{.size = 7}, {.size = 6}});
    const Output w = variable({16, 10}, 0.3f), bias = variable({10}, 0.1f);
    const Output logits = b.biasAdd(b.matMul(b.reshape(x, {6, 16}), w), bias);
    const Output labels = integers(DType::kUInt8, {6}, 10);
    const Output loss = b.mean(b.sparseSoftmaxCrossEntropy(logits, labels).loss);
    fetches = graph::addGradients(graph, loss, variables);
    fetches.push_back(loss);
  }

  Output variable(Shape shape, float range) {
    variables.push_back(floats(std::move(shape), -range, range));
    return variables.back();
  }
  Output convolved(Output x, int64_t from, int64_t to, int64_t size) {
    const Window same = paddedSame({{.size = size}, {.size = size}}, 7, 6);
    const Output y = b.conv2D(x, variable({size, size, from, to}, 0.3f), same);
    variables.push_back(floats({to}, 0.5f, 2));
    const Output scale = variables.back();
    return b.batchNorm(y, scale, variable({to}, 0.5f), 1e-3).y;
  }
  Output block(Output x, int64_t from, int64_t to, bool projects) {
    const Output inner = convolved(b.relu(convolved(x, from, to, 3)), to, to, 3);
    return b.relu(b.add(inner, projects ? convolved(x, from, to, 1) : x));
  }

  // The relative error of each fetch against the reference.
  std::vector<double> errors(DeviceUnderTest& device, CompileOptions options) {
    StepRunner runner(*device.device, device.kernels, graph, feeds, fetches, options);
    runner.run();
    const std::vector<Values> expected = graph::testing::evaluate(graph, feeds, fetches);
    std::vector<double> found;
    for (size_t i = 0; i < fetches.size(); ++i)
      found.push_back(distance(runner.fetch(static_cast<int>(i)), expected[i]));
    return found;
  }

  std::vector<Output> variables, fetches;
};

// A CPU rounds the factors of products to bfloat16; other devices hold bfloat16 tensors.
bool hasBFloat16(const DeviceUnderTest& device) {
  const DeviceType type = device.device->type();
  return type == DeviceType::kCpu || device.kernels.has(kCastPrecisionOp, type);
}

TEST_P(DeviceSuite, TrainsResidualBlocks) {
  ResidualNetwork c;
  c.expect(device_, c.fetches, 20 * kSums);
}

TEST_P(DeviceSuite, JoinsANormalisationWithTheReluBehindIt) {
  const bool joins = device_.kernels.has(kFusedBatchNormReluOp, device_.device->type());
  ResidualNetwork c;
  const std::string plan =
      StepRunner(*device_.device, device_.kernels, c.graph, c.feeds, c.fetches).step().plan().str();
  if (!joins) {
    EXPECT_THAT(plan, Not(HasSubstr(kFusedBatchNormReluOp)));
    return;
  }
  // Only the projection's normalisation and its gradient keep a pass of their own.
  EXPECT_THAT(plan, Not(HasSubstr("\nRelu ")));
  EXPECT_THAT(plan, Not(HasSubstr("\nReluGrad ")));
  EXPECT_THAT(plan, Not(HasSubstr("\nAdd ")));
  EXPECT_EQ(plan.find("\nAddN "), plan.rfind("\nAddN "))
      << "only the images' gradient is summed apart";
}

// Rounding to 8 bits may close or open a relu, so that gradients differ by more than the rounding.
TEST_P(DeviceSuite, BFloat16GivesTheLossAndTheDirectionOfTheGradients) {
  ResidualNetwork c;
  const CompileOptions narrow = {.precision = Precision::kBFloat16};
  if (!hasBFloat16(device_)) {
    try {
      c.errors(device_, narrow);
      FAIL() << "it has no kernels for that";
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), HasSubstr("set train.precision to float32"));
    }
    return;
  }
  for (const bool fuse : {true, false}) {
    const std::vector<double> errors =
        c.errors(device_, {.fuse = fuse, .precision = Precision::kBFloat16});
    EXPECT_THAT(errors, Each(Lt(0.2)));
    EXPECT_GT(errors.front(), 1e-4) << "this is float32";
    EXPECT_LT(errors.back(), 0.01) << "the loss";
  }
}

// Channels that no pack divides, poolings, biases; and a loop.
TEST_P(DeviceSuite, BFloat16HasAKernelForEveryShape) {
  if (!hasBFloat16(device_)) return;  // the case above covers a device without it
  for (const int64_t channels : {1, 3, 8, 9, 16}) {
    SCOPED_TRACE(channels);
    Case c;
    const Output x = c.floats({5, 6, 6, channels}, 0, 1);
    const Output f = c.floats({3, 3, channels, channels}, -0.3f, 0.3f), bias = c.floats({channels});
    const Output scale = c.floats({channels}, 0.5f, 2), offset = c.floats({channels});
    const Window same = paddedSame({{.size = 3}, {.size = 3}}, 6, 6);
    const Output y =
        c.b.relu(c.b.batchNorm(c.b.biasAdd(c.b.conv2D(x, f, same), bias), scale, offset, 1e-2).y);
    const Window half = {{.size = 2, .stride = 2}, {.size = 2, .stride = 2}};
    const Output pooled = c.b.maxPool(y, half).y;
    const Output w = c.floats({9 * channels, 7}, -0.3f, 0.3f);
    const Output all = c.b.relu(c.b.matMul(c.b.reshape(pooled, {5, 9 * channels}), w));
    const Output loss = c.b.mean(c.b.add(c.b.tanh(all), c.b.tanh(all)));
    std::vector<Output> fetches =
        graph::addGradients(c.graph, loss, std::array{x, f, bias, scale, offset, w});
    fetches.push_back(loss);
    const CompileOptions narrow = {.precision = Precision::kBFloat16};
    StepRunner runner(*device_.device, device_.kernels, c.graph, c.feeds, fetches, narrow);
    runner.run();
    const std::vector<Values> expected = graph::testing::evaluate(c.graph, c.feeds, fetches);
    // Another maximum sends its gradient elsewhere. A bias before a normalisation changes nothing:
    // its gradient is only rounding.
    for (const size_t i : {0, 1, 3, 4, 5, 6})
      EXPECT_LT(distance(runner.fetch(static_cast<int>(i)), expected[i]), 0.5) << i;
  }
}

TEST_P(DeviceSuite, Tf32KeepsTwoDigits) {
  ResidualNetwork c;
  EXPECT_THAT(c.errors(device_, {.precision = Precision::kTf32}), Each(Lt(5e-2)));
}

}  // namespace
}  // namespace dtf::runtime::testing
