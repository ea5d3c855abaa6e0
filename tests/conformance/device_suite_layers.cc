// Activations, losses, normalisation and parts of tensors.

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "common/base/error.h"
#include "tests/conformance/device_case.h"

namespace dtf::runtime::testing {
namespace {

TEST_P(DeviceSuite, ActivatesAndDifferentiates) {
  for (const int64_t rows : kSizes) {
    for (const int64_t columns : kSizes) {
      Case c;
      const Output x = c.floats({rows, columns}), d = c.floats({rows, columns});
      const Output wide = c.floats({rows, columns}, -9, 9);
      c.expect(
          device_,
          {c.b.abs(x), c.b.absGrad(d, x), c.b.relu6(wide), c.b.relu6Grad(d, c.b.relu6(wide)),
           c.b.leakyRelu(x, 0.2), c.b.leakyReluGrad(d, x, 0.2), c.b.elu(x),
           c.b.eluGrad(d, c.b.elu(x)), c.b.gelu(x), c.b.geluGrad(d, x, false), c.b.gelu(x, true),
           c.b.geluGrad(d, x, true), c.b.silu(x), c.b.siluGrad(d, x), c.b.softplus(x),
           c.b.softplusGrad(d, x), c.b.huber(x, 1.5), c.b.huberGrad(d, x, 1.5)},
          kElementwise);
    }
  }
}

TEST_P(DeviceSuite, ActivatesFarFromZeroAndNearIt) {
  Case c;
  const Output far = c.floats({1000}, -80, 80), near = c.floats({1000}, -1e-3f, 1e-3f);
  c.expect(device_,
           {c.b.gelu(far), c.b.gelu(far, true), c.b.silu(far), c.b.softplus(far), c.b.elu(far),
            c.b.scale(c.b.gelu(near), 1e3), c.b.scale(c.b.silu(near), 1e3), c.b.softplus(near)},
           kElementwise);
}

TEST_P(DeviceSuite, TakesTheSoftmaxOfAnyRank) {
  Case c;
  const Output image = c.floats({2, 3, 5, 17}), vector = c.floats({9});
  const Output d = c.floats({2, 3, 5, 17});
  c.expect(device_,
           {c.b.softmax(image), c.b.softmax(vector), c.b.softmaxGrad(d, c.b.softmax(image))},
           kSums);
}

TEST_P(DeviceSuite, TakesARowOfTargetsForEachExample) {
  for (const int64_t rows : kSizes) {
    for (const int64_t classes : {1, 2, 10, 17, 100}) {
      Case c;
      const Output logits = c.floats({rows, classes}, -20, 20);
      const Output targets = c.b.softmax(c.floats({rows, classes}));
      const auto entropy = c.b.softmaxCrossEntropy(logits, targets);
      c.expect(device_, {entropy.loss, entropy.backprop}, kSums);
    }
  }
}

TEST_P(DeviceSuite, Normalises) {
  const std::vector<Shape> shapes = {{2, 1},        {3, 5},      {130, 16},
                                     {2, 3, 4, 33}, {5, 4, 100}, {7, 260}};
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(shape.str());
    Case c;
    const Shape channels = {shape.dim(shape.rank() - 1)};
    const Output x = c.floats(shape), dy = c.floats(shape, -1, 1);
    const Output scale = c.floats(channels, 0.5f, 2), offset = c.floats(channels);
    const Output mean = c.floats(channels, -1, 1), variance = c.floats(channels, 0.1f, 2);
    const auto batch = c.b.batchNorm(x, scale, offset, 1e-2);
    const auto batch_grad = c.b.batchNormGrad(dy, x, scale, batch.mean, batch.inverse, 1e-2);
    const auto layer = c.b.layerNorm(x, scale, offset, 1e-2);
    const auto layer_grad = c.b.layerNormGrad(dy, x, scale, layer.mean, layer.inverse, 1e-2);
    c.expect(
        device_,
        {batch.y, batch.mean, batch.variance, batch.inverse, batch_grad.dx, batch_grad.dscale,
         batch_grad.doffset, c.b.batchNormInference(x, scale, offset, mean, variance, 1e-2),
         layer.y, layer.mean, layer.inverse, layer_grad.dx, layer_grad.dscale, layer_grad.doffset},
        5 * kSums);
  }
}

TEST_P(DeviceSuite, CutsAndJoins) {
  Case c;
  const Output a = c.floats({3, 4, 5}), b = c.floats({3, 1, 5}), image = c.floats({2, 5, 6, 3});
  c.expect(device_,
           {c.b.concat({a, b, a}, 1), c.b.concat({a, a}, 0), c.b.concat({a, a}, 2),
            c.b.slice(image, {1, 2, 0, 1}, {1, 3, 6, 2}),
            c.b.slice(image, {0, 1, 0, 0}, {2, 2, 6, 3}), c.b.slice(a, {0, 0, 0}, {3, 4, 5}),
            c.b.slice(a, {3, 0, 0}, {0, 4, 5}), c.b.pad(image, {0, 2, 1, 0}, {0, 1, 3, 0}),
            c.b.pad(a, {1, 0, 2}, {0, 0, 1}), c.b.pad(a, {0, 0, 0}, {0, 0, 0})},
           0);
}

TEST_P(DeviceSuite, GathersRowsAndAddsThemUp) {
  for (const DType dtype : {DType::kUInt8, DType::kInt32, DType::kInt64, DType::kFloat32}) {
    for (const int64_t width : kSizes) {
      Case c;
      const Output table = c.floats({7, width}), indices = c.integers(dtype, {4, 5}, 7);
      const Output dy = c.floats({4, 5, width}, -1, 1);
      c.expect(device_,
               {c.b.gather(table, indices), c.b.unsortedSegmentSum(dy, indices, {7, width})},
               kSums);
    }
  }
}

// Ops that assign and scatter, as functions of a variable's value.
TEST_P(DeviceSuite, ComputesWhatVariablesAreAssigned) {
  for (const int64_t width : kSizes) {
    Case c;
    const Output table = c.floats({7, width}), value = c.floats({7, width});
    const Output indices = c.integers(DType::kInt64, {4, 5}, 7);
    const Output updates = c.floats({4, 5, width}, -1, 1);
    std::vector<Output> fetches;
    for (const char* const op : {"Assign", "AssignAdd", "AssignSub"})
      fetches.push_back({c.b.node(op, {table, value})});
    for (const char* const op : {"ScatterAdd", "ScatterUpdate"})
      fetches.push_back({c.b.node(op, {table, indices, updates})});
    c.expect(device_, fetches, kSums);
  }
}

TEST_P(DeviceSuite, RefusesAnIndexWithoutARow) {
  struct Wrong {
    DType dtype = DType::kInt32;
    double index = 0;
  };
  for (const auto& [dtype, wrong] :
       {Wrong{DType::kInt32, -1}, Wrong{DType::kInt32, 7}, Wrong{DType::kFloat32, 7},
        Wrong{DType::kFloat32, -0.5}, Wrong{DType::kFloat32, 2.5}, Wrong{DType::kFloat32, 1e30},
        Wrong{DType::kFloat32, std::nan("")}}) {
    Case c;
    const Output table = c.floats({7, 3}), indices = c.integers(dtype, {4}, 7);
    c.feeds[indices][2] = wrong;
    const std::vector<Output> fetches = {c.b.gather(table, indices)};
    StepRunner runner(*device_.device, device_.kernels, c.graph, c.feeds, fetches);
    try {
      runner.run();
      ADD_FAILURE() << "index " << wrong << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadData);
      EXPECT_THAT(error.message(), ::testing::HasSubstr("index 2 is"));
    }
  }
}

TEST_P(DeviceSuite, ConvolvesEachChannelAlone) {
  for (const int64_t multiplier : {1, 2}) {
    for (const int64_t channels : {1, 3, 16, 37}) {
      Case c;
      const Output x = c.floats({2, 7, 6, channels}, -1, 1);
      const Output f = c.floats({3, 3, channels, multiplier}, -1, 1);
      const graph::Window window = {{.stride = 2, .before = 1, .after = 1},
                                    {.before = 1, .after = 1}};
      const Output y = c.b.depthwiseConv2D(x, f, window);
      const Shape grouped = {3, 3, 1, channels * multiplier};
      const Output dy = c.floats(c.graph.spec(y).shape, -1, 1);
      c.expect(device_,
               {y,
                c.b.conv2DBackpropInput({2, 7, 6, channels}, c.b.reshape(f, grouped), dy, window,
                                        channels),
                c.b.conv2DBackpropFilter(x, grouped, dy, window, channels)},
               kSums);
    }
  }
}

}  // namespace
}  // namespace dtf::runtime::testing
