// Arithmetic that broadcasts, reductions, casts and random numbers.

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "common/base/error.h"
#include "common/graph/autodiff.h"
#include "tests/conformance/device_case.h"

namespace dtf::runtime::testing {
namespace {

TEST_P(DeviceSuite, DividesAndTakesPowersAndRoots) {
  for (const int64_t rows : kSizes) {
    for (const int64_t columns : kSizes) {
      Case c;
      const Output x = c.floats({rows, columns}), y = c.floats({rows, columns});
      const Output above = c.floats({rows, columns}, 0.1f, 9);
      c.expect(device_,
               {c.b.div(x, above), c.b.div(above, above), c.b.maximum(x, y), c.b.minimum(x, y),
                c.b.pow(above, x), c.b.log(above), c.b.sqrt(above), c.b.rsqrt(above),
                c.b.scale(c.b.exp(x), 1e-2)},
               kElementwise);
    }
  }
}

TEST_P(DeviceSuite, Chooses) {
  for (const int64_t size : kSizes) {
    Case c;
    const Output a = c.floats({size, 5}), b = c.floats({size, 5});
    const Output condition = c.integers(DType::kUInt8, {size, 5}, 3);
    c.expect(device_,
             {Output{c.b.node("Select", {condition, a, b})},
              Output{c.b.node("Select", {c.b.less(a, b), b, a})},
              Output{c.b.node("StopGradient", {a})}, Output{c.b.node("StopGradient", {condition})}},
             0);
  }
}

// Infinite operands and NaN give the results of IEEE 754.
TEST_P(DeviceSuite, KnowsTheEndsOfTheScale) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  Case c;
  const Output x = c.floats({8});
  c.feeds[x] = {0, -1, kInfinite, -kInfinite, std::nan(""), 100, -200, 1e-40};
  const Output one = c.b.constant({8}, 1), half = c.b.constant({8}, 0.5);
  const std::vector<Output> fetches = {
      c.b.exp(x),          c.b.log(x),          c.b.sqrt(x),         c.b.rsqrt(x),
      c.b.div(one, x),     c.b.maximum(x, one), c.b.minimum(x, one), c.b.maximum(one, x),
      c.b.minimum(one, x), c.b.pow(x, half),    c.b.pow(x, one),     c.b.pow(half, x)};
  StepRunner runner(*device_.device, device_.kernels, c.graph, c.feeds, fetches);
  runner.run();
  for (size_t f = 0; f < fetches.size(); ++f) {
    const Values expected = evaluate(c.graph, c.feeds, fetches[f]);
    const Values actual = runner.fetch(static_cast<int>(f));
    for (size_t i = 0; i < expected.size(); ++i) {
      SCOPED_TRACE(c.graph.node(fetches[f].node).name + " of " + std::to_string(c.feeds[x][i]));
      const auto rounded = static_cast<float>(expected[i]);  // e^100 is infinite
      if (std::isnan(rounded)) {
        EXPECT_TRUE(std::isnan(actual[i])) << actual[i];
      } else if (std::isinf(rounded)) {
        EXPECT_EQ(actual[i], rounded);
      } else {
        EXPECT_NEAR(actual[i], rounded, 1e-5 * (1 + std::abs(rounded)));
      }
    }
  }
}

TEST_P(DeviceSuite, RepeatsOperands) {
  const std::vector<std::array<Shape, 2>> pairs = {
      {Shape{17, 100}, Shape{100}}, {Shape{17, 100}, Shape{17, 1}},
      {Shape{3, 700}, Shape{}},     {Shape{4, 1, 3}, Shape{5, 1}},
      {Shape{1, 33}, Shape{17, 1}}, {Shape{3}, Shape{1, 1, 3}},
      {Shape{1, 3}, Shape{3, 1}},   {Shape{2, 1, 5, 1, 7}, Shape{3, 1, 2, 7}},
      {Shape{0, 3}, Shape{3}}};
  for (const auto& [one, other] : pairs) {
    SCOPED_TRACE(one.str() + " " + other.str());
    Case c;
    const Output a = c.floats(one), b = c.floats(other, 0.5f, 4);
    const Output m = c.integers(DType::kInt64, one, 3), n = c.integers(DType::kInt64, other, 3);
    c.expect(
        device_,
        {c.b.add(a, b), c.b.add(b, a), c.b.sub(a, b), c.b.sub(b, a), c.b.mul(a, b), c.b.div(a, b),
         c.b.maximum(a, b), c.b.minimum(b, a), c.b.squaredDifference(a, b), c.b.pow(b, b),
         c.b.pow(b, c.b.scale(a, 0.2)), c.b.less(a, b), c.b.lessEqual(m, n), c.b.equal(n, m)},
        kElementwise);
  }
}

TEST_P(DeviceSuite, SumsOverDimensions) {
  for (const Shape& shape : {Shape{17, 100}, Shape{3, 5, 70}, Shape{2, 3, 1, 5, 4}, Shape{1, 1},
                             Shape{200, 3}, Shape{2, 9'000}, Shape{2'000, 2, 3}, Shape{3, 0, 2}}) {
    for (int subset = 1; subset < 1 << shape.rank(); ++subset) {
      std::vector<int64_t> axes;
      int64_t reduced = 1;
      for (int axis = 0; axis < shape.rank(); ++axis) {
        if ((subset >> axis & 1) == 0) continue;
        axes.push_back(axis);
        reduced *= shape.dim(axis);
      }
      SCOPED_TRACE(shape.str() + " over " + Shape(axes).str());
      Case c;
      const Output x = c.floats(shape, -1, 1);
      std::vector<Output> fetches = {c.b.sum(x, Shape(axes)), c.b.sum(x, Shape(axes), true)};
      if (shape.elements() > 0) fetches.push_back(c.b.mean(x, Shape(axes), reduced > 4));
      c.expect(device_, fetches, kSums);
    }
  }
}

TEST_P(DeviceSuite, FindsExtremesOverDimensions) {
  for (const Shape& shape : {Shape{17, 100}, Shape{3, 5, 70}, Shape{2, 3, 1, 5, 4}, Shape{1, 1},
                             Shape{200, 3}, Shape{2, 9'000}, Shape{9'000, 2}}) {
    for (int subset = 1; subset < 1 << shape.rank(); ++subset) {
      std::vector<int64_t> axes;
      for (int axis = 0; axis < shape.rank(); ++axis)
        if ((subset >> axis & 1) != 0) axes.push_back(axis);
      SCOPED_TRACE(shape.str() + " over " + Shape(axes).str());
      Case c;
      const Output x = c.floats(shape, -9, 1);
      c.expect(device_,
               {c.b.max(x, Shape(axes)), c.b.min(x, Shape(axes), true), c.b.max(x, {}, true),
                c.b.min(c.floats(shape, 1, 9))},
               0);
    }
  }
}

TEST_P(DeviceSuite, FindsExtremesAmongTheEndsOfTheScale) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const double nan = std::nan("");
  Case c;
  const Output x = c.floats({4, 3});
  c.feeds[x] = {nan, 1, 2, kInfinite, 3, -kInfinite, -0.0, 0, -1e-40, 1, 2, -nan};
  const Output nothing = c.floats({2, 0});
  const std::vector<Output> fetches = {c.b.max(x, {1}), c.b.min(x, {1}), c.b.max(x, {0}),
                                       c.b.max(nothing, {1}), c.b.min(nothing)};
  StepRunner runner(*device_.device, device_.kernels, c.graph, c.feeds, fetches);
  runner.run();
  const auto at = [&](int fetch, size_t i) { return runner.fetch(fetch)[i]; };
  for (const int fetch : {0, 1}) {
    EXPECT_TRUE(std::isnan(at(fetch, 0)));
    EXPECT_TRUE(std::isnan(at(fetch, 3)));
  }
  EXPECT_TRUE(std::isnan(at(2, 0)));
  EXPECT_TRUE(std::isnan(at(2, 2)));
  EXPECT_EQ(at(2, 1), 3);
  EXPECT_EQ(at(0, 1), kInfinite);
  EXPECT_EQ(at(1, 1), -kInfinite);
  EXPECT_THAT(runner.fetch(3), ::testing::ElementsAre(-kInfinite, -kInfinite));
  EXPECT_THAT(runner.fetch(4), ::testing::ElementsAre(kInfinite));
  EXPECT_EQ(at(0, 2), 0);
  EXPECT_EQ(at(1, 2), static_cast<double>(-1e-40F));
}

// Equal elements share a gradient.
TEST_P(DeviceSuite, FindsExtremesBackwards) {
  Case c;
  const Output x = c.b.cast(c.integers(DType::kUInt8, {17, 33}, 9), DType::kFloat32);
  const Output y = c.floats({17, 33}), above = c.floats({17, 33}, 0.5f, 3);
  const Output loss =
      c.b.sum(c.b.mul(c.b.max(c.b.mul(x, y), {1}), c.b.min(c.b.pow(above, y), {1})));
  const auto gradients = graph::addGradients(c.graph, loss, std::array{y, above});
  c.expect(device_, {gradients[0], gradients[1]}, kSums);
}

TEST_P(DeviceSuite, RepeatsTensors) {
  Case c;
  c.expect(device_,
           {c.b.broadcastTo(c.floats({3, 1}), {2, 3, 500}), c.b.broadcastTo(c.floats({}), {7}),
            c.b.broadcastTo(c.floats({5}), {5}), c.b.broadcastTo(c.floats({1, 4}), {0, 4})},
           0);
}

TEST_P(DeviceSuite, FindsTheLargest) {
  for (const int64_t size : kSizes) {
    Case c;
    const Output x = c.floats({size, 4, 7});
    const Output ties = c.b.cast(c.integers(DType::kUInt8, {size, 9}, 3), DType::kFloat32);
    c.expect(device_, {c.b.argMax(x, 0), c.b.argMax(x, 1), c.b.argMax(x, 2), c.b.argMax(ties, 1)},
             0);
  }
  // NaN is never the largest, not even as the first element.
  Case c;
  const Output x = c.floats({5, 3});
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  c.feeds[x] = {nan, 1, 2, 1, nan, 2, 2, 1, nan, nan, nan, nan, nan, -infinity, nan};
  c.expect(device_, {c.b.argMax(x, 0), c.b.argMax(x, 1)}, 0);
}

TEST_P(DeviceSuite, FindsTheLargestOfMany) {
  for (const Shape& shape : {Shape{2, 9'000}, Shape{9'000, 2}}) {
    for (const int axis : {0, 1}) {
      Case c;
      const Output x = c.floats(shape);
      const Output ties = c.b.cast(c.integers(DType::kUInt8, shape, 200), DType::kFloat32);
      c.expect(device_, {c.b.argMax(x, axis), c.b.argMax(ties, axis)}, 0);
    }
  }
}

// The first of two zeros wins, whatever their signs; a NaN wins only in the first place.
TEST_P(DeviceSuite, FindsTheLargestAmongTheEndsOfTheScale) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const double nan = std::nan("");
  Case c;
  const Output x = c.floats({6, 3});
  c.feeds[x] = {-1,  -0.0, 0,   -1,  0,   -0.0,      -kInfinite, -kInfinite, -1e30,
                nan, 1,    nan, nan, nan, kInfinite, -kInfinite, nan,        -kInfinite};
  const std::vector<Output> fetches = {c.b.argMax(x, 1)};
  StepRunner runner(*device_.device, device_.kernels, c.graph, c.feeds, fetches);
  runner.run();
  EXPECT_THAT(runner.fetch(0), ::testing::ElementsAre(1, 1, 2, 1, 2, 0));
}

TEST_P(DeviceSuite, Casts) {
  Case c;
  const Output x = c.floats({100}, -300, 300), far = c.floats({4});
  c.feeds[far] = {1e30, -1e30, std::nan(""), 0x1p31};
  const Output wide = c.integers(DType::kInt64, {8}, 2);
  c.feeds[wide] = {-1, 0, 255, 256, 0x1p31, -0x1p33, 0x1p40, -0x1p40};
  std::vector<Output> fetches;
  for (const DType to : {DType::kFloat32, DType::kUInt8, DType::kInt32, DType::kInt64}) {
    for (const DType from : {DType::kUInt8, DType::kInt32, DType::kInt64})
      fetches.push_back(c.b.cast(c.integers(from, {100}, 256), to));
    fetches.push_back(c.b.cast(x, to));
    fetches.push_back(c.b.cast(wide, to));
    if (to == DType::kInt32 || to == DType::kUInt8) fetches.push_back(c.b.cast(far, to));
  }
  c.expect(device_, fetches, 0);
}

TEST_P(DeviceSuite, DrawsWhatSeedAndStreamSay) {
  for (const int64_t size : kSizes) {
    Case c;
    const Output seed = c.b.placeholder("seed", DType::kInt64, {2});
    c.feeds[seed] = {0x1p45 + 3, 0x1p33 + 5};  // more than 32 bits of each count
    c.expect(device_, {c.b.randomUniform(seed, {size, 7}), c.b.randomUniform(seed, {size}, 999)},
             0);
    c.expect(device_, {c.b.randomNormal(seed, {size, 7}), c.b.randomNormal(seed, {size}, 1)},
             kElementwise);
  }
}

// Programs of several of these ops, and their gradients.
TEST_P(DeviceSuite, ComputesANormalisationAndASoftmaxMadeOfOps) {
  Case c;
  const Output x = c.floats({17, 33});
  const Output centred = c.b.sub(x, c.b.mean(x, {0}, true));
  const Output variance = c.b.mean(c.b.mul(centred, centred), {0});
  const Output normal = c.b.mul(centred, c.b.rsqrt(c.b.add(variance, c.b.constant({}, 1e-2))));
  const Output powers = c.b.exp(normal);
  const Output logs = c.b.log(c.b.div(powers, c.b.sum(powers, {1}, true)));
  const Output loss = c.b.mean(c.b.mul(logs, c.floats({17, 33}, -1, 1)));
  const Output dx = graph::addGradients(c.graph, loss, std::array{x})[0];
  c.expect(device_, {normal, logs, loss, dx}, kSums);
}

}  // namespace
}  // namespace dtf::runtime::testing
