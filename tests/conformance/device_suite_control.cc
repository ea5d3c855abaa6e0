// Branches and loops: a device computes the same inside them as outside.

#include "common/base/error.h"
#include "common/graph/autodiff.h"
#include "common/graph/function.h"
#include "tests/conformance/device_case.h"
#include "tests/unit/graph/control_functions.h"

namespace dtf::runtime::testing {
namespace {

using graph::Builder;
using graph::Function;
using graph::FunctionRef;
using graph::testing::floatSpec;
using Outputs = std::vector<Output>;
using Parameters = std::span<const Output>;

TEST_P(DeviceSuite, ComparesByElement) {
  Case c;
  for (const int64_t size : kSizes) {
    const Output x = c.floats({size}, 0, 3), y = c.floats({size}, 0, 3);
    const Output m = c.integers(DType::kInt32, {size}, 3), n = c.integers(DType::kInt32, {size}, 3);
    const Output k = c.integers(DType::kUInt8, {size}, 3), l = c.integers(DType::kUInt8, {size}, 3);
    c.expect(
        device_,
        {c.b.less(x, y), Output{c.b.node("LessEqual", {x, x})}, c.b.equal(y, y), c.b.less(m, n),
         Output{c.b.node("LessEqual", {m, n})}, c.b.equal(m, n), c.b.less(k, l), c.b.equal(k, l)},
        0);
  }
}

TEST_P(DeviceSuite, Transposes) {
  Case c;
  const Output x = c.floats({3, 5, 17}), deep = c.floats({2, 3, 4, 5, 6}), none = c.floats({3, 0});
  c.expect(device_,
           {c.b.transpose(x, {1, 0, 2}), c.b.transpose(x, {2, 0, 1}), c.b.transpose(x, {0, 1, 2}),
            c.b.transpose(x, {0, 2, 1}), c.b.transpose(deep, {3, 1, 4, 0, 2}),
            c.b.transpose(deep, {1, 0, 2, 3, 4}), c.b.transpose(none, {1, 0}),
            c.b.transpose(c.floats({}), Shape()), c.b.transpose(c.floats({100, 37}), {1, 0}),
            c.b.transpose(c.floats({3, 40, 33}), {0, 2, 1}),
            c.b.transpose(c.floats({19, 1, 33}), {2, 1, 0}),
            c.b.transpose(c.floats({4, 21, 6, 3}), {2, 0, 3, 1})},
           0);
}

FunctionRef functionOf(std::vector<graph::TensorSpec> parameters, const Function::Build& build) {
  return Function::build(graph::standardOps(), parameters, build);
}

TEST_P(DeviceSuite, RunsTheBranchThatItsConditionChooses) {
  const auto both = [](double factor) {
    return functionOf({floatSpec({3, 17})}, [factor](Builder& b, Parameters p) {
      return Outputs{b.scale(b.tanh(p[0]), factor), p[0], b.constant({2}, factor)};
    });
  };
  Case c;
  const Output x = c.floats({3, 17});
  Outputs all;
  for (const double value : {0.0, 0.5, 1.0}) {
    const auto made = c.b.cond(c.b.constant({}, value), {x}, both(2), both(-1));
    all.insert(all.end(), made.begin(), made.end());
  }
  for (const DType dtype : {DType::kUInt8, DType::kInt32, DType::kInt64}) {
    const auto made = c.b.cond(c.b.constant({}, 1, dtype), {x}, both(2), both(-1));
    all.push_back(made[0]);
  }
  c.expect(device_, all, kElementwise);
}

// A recurrent layer over a sequence, forwards and backwards, with its gradients.
TEST_P(DeviceSuite, RunsALoopOverASequenceAndItsGradient) {
  const graph::TensorSpec state = floatSpec({3, 17}), weights = floatSpec({17, 17});
  const auto body = functionOf({state, state, state, weights}, [](Builder& b, Parameters p) {
    const Output next = b.tanh(b.add(p[2], b.matMul(p[0], p[3])));
    return Outputs{next, b.add(p[1], next), b.mul(next, p[1]), p[0]};
  });
  for (const bool reverse : {false, true}) {
    Case c;
    const Output x = c.floats({6, 3, 17}, -1, 1), h = c.floats({3, 17}, -1, 1),
                 w = c.floats({17, 17}, -0.3f, 0.3f);
    const auto loop = c.b.whileLoop({.carried = {h, c.b.constant({3, 17}, 0)},
                                     .sequences = {x},
                                     .captured = {w},
                                     .body = body,
                                     .cond = nullptr,
                                     .max_iterations = 6,
                                     .stacked = 1,
                                     .summed = 1,
                                     .reverse = reverse,
                                     .keep_carried = true});
    const Output loss =
        c.b.addN({c.b.mean(c.b.tanh(loop.carried[1])), c.b.mean(c.b.tanh(loop.stacked[0])),
                  c.b.mean(c.b.tanh(loop.summed[0]))});
    Outputs all = {loop.carried[0], loop.carried[1], loop.stacked[0], loop.summed[0], loss};
    for (const Output& gradient : addGradients(c.graph, loss, std::array{x, h, w}))
      all.push_back(gradient);
    c.expect(device_, all, kSums);
  }
}

// The loop's end depends on a fed value: a device that runs a fixed list of kernels rejects it.
void expectRefused(DeviceUnderTest& device) {
  const graph::TensorSpec number = floatSpec({});
  const auto half =
      functionOf({number}, [](Builder& b, Parameters p) { return Outputs{b.scale(p[0], 0.5)}; });
  const auto is_large = functionOf(
      {number}, [](Builder& b, Parameters p) { return Outputs{b.less(b.constant({}, 1), p[0])}; });
  Case c;
  const auto loop = c.b.whileLoop({.carried = {c.floats({})},
                                   .sequences = {},
                                   .captured = {},
                                   .body = half,
                                   .cond = is_large,
                                   .max_iterations = 12});
  try {
    StepRunner(*device.device, device.kernels, c.graph, c.feeds, std::array{loop.carried[0]});
    FAIL() << "it has no kernel for that";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("While"), std::string::npos) << error.message();
  }
}

// States that change places, one of them integer; a cond that ends the loop early, or at once.
TEST_P(DeviceSuite, ALoopEndsWhenItsCondSaysSo) {
  if (device_.lacks.contains("While")) {
    expectRefused(device_);
    return;
  }
  const graph::TensorSpec small = floatSpec({}), number = {DType::kInt64, Shape()};
  const auto swap = functionOf({small, small, number, small}, [](Builder& b, Parameters p) {
    return Outputs{p[1], b.add(p[0], p[1]), p[2], p[0]};
  });
  const auto below = functionOf({small, small, number, small}, [](Builder& b, Parameters p) {
    return Outputs{b.less(p[0], p[3])};
  });
  Case c;
  Outputs all;
  for (const double bound : {-1.0, 5.0, 30.0, 1e6}) {
    const auto loop = c.b.whileLoop(
        {.carried = {c.b.constant({}, 0), c.b.constant({}, 1), c.b.constant({}, 7, DType::kInt64)},
         .sequences = {},
         .captured = {c.b.constant({}, bound)},
         .body = swap,
         .cond = below,
         .max_iterations = 12,
         .stacked = 1});
    all.insert(all.end(), loop.carried.begin(), loop.carried.end());
    all.push_back(loop.iterations);
    all.push_back(loop.stacked[0]);
  }
  c.expect(device_, all, 0);
}

// A peer may send any count: it is clamped to the range from 0 to the maximum.
TEST_P(DeviceSuite, ACountedLoopRunsAsOftenAsItIsTold) {
  const auto body = functionOf({floatSpec({3}), floatSpec({3})}, [](Builder& b, Parameters p) {
    return Outputs{b.add(b.scale(p[0], 0.5), p[1]), b.scale(p[0], 3), b.tanh(p[1])};
  });
  Case c;
  const Output state = c.floats({3}), sequence = c.floats({5, 3});
  Outputs all;
  for (const double count : {-3.0, 0.0, 2.0, 5.0, 99.0}) {
    for (const bool reverse : {false, true}) {
      const graph::NodeId made =
          c.b.node("While", {c.b.constant({}, count, DType::kInt64), state, sequence},
                   {{"body", body},
                    {"max_iterations", int64_t{5}},
                    {"carried", int64_t{1}},
                    {"sequences", int64_t{1}},
                    {"stacked", int64_t{1}},
                    {"summed", int64_t{1}},
                    {"counted", true},
                    {"reverse", reverse},
                    {"keep_carried", true}});
      for (int32_t i = 0; i < 5; ++i) all.push_back({made, i});
    }
  }
  c.expect(device_, all, kSums);
}

TEST_P(DeviceSuite, ALoopWithinALoopKeepsItsOwnState) {
  const graph::TensorSpec spec = floatSpec({2, 3});
  const auto step = functionOf({spec, spec}, [](Builder& b, Parameters p) {
    return Outputs{b.add(b.scale(p[0], 0.5), p[1])};
  });
  const auto outer = functionOf({spec, spec}, [&](Builder& b, Parameters p) {
    return b
        .whileLoop({.carried = {p[0]},
                    .sequences = {},
                    .captured = {p[1]},
                    .body = step,
                    .cond = nullptr,
                    .max_iterations = 3})
        .carried;
  });
  Case c;
  const Output x = c.floats({2, 3}), y = c.floats({2, 3});
  const auto loop = c.b.whileLoop({.carried = {x},
                                   .sequences = {},
                                   .captured = {y},
                                   .body = outer,
                                   .cond = nullptr,
                                   .max_iterations = 4});
  c.expect(device_, {loop.carried[0]}, kElementwise);
}

}  // namespace
}  // namespace dtf::runtime::testing
