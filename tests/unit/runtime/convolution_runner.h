#pragma once

// Runs the three directions of a convolution with one of its algorithms.

#include <vector>

#include "common/base/random.h"
#include "common/runtime/convolution_ways.h"
#include "common/tensor/buffer.h"
#include "tests/unit/runtime/guarded_memory.h"

namespace dtf::runtime::testing {

struct ConvolutionResults {
  std::vector<float> y, dx, dfilter;
  bool operator==(const ConvolutionResults&) const = default;
};

// Owns `count` floats that end where inaccessible memory begins: random, and never 0.
struct RandomFloats : Guarded<float> {
  explicit RandomFloats(int64_t n) : Guarded(static_cast<size_t>(n)), count(n) {
    Random random(static_cast<uint64_t>(n));
    for (int64_t i = 0; i < n; ++i) data()[i] = random.uniform(-1, 1);
  }
  std::vector<float> values() { return {data(), data() + count}; }
  int64_t count;
};

// Returns the result of one pass, on exactly the workspace that it asks for.
inline std::vector<float> passResult(const Processor& cpu, ConvolutionPass pass,
                                     const Convolution& c, const ConvolutionWay& way) {
  const int64_t x = c.imageElements(), filter = c.filterElements(), y = c.outElements();
  const bool forward = pass == ConvolutionPass::kForward;
  const bool to_filter = pass == ConvolutionPass::kBackpropFilter;
  RandomFloats first(forward || to_filter ? x : filter), second(forward ? filter : y);
  RandomFloats result(forward ? y : to_filter ? filter : x);
  Guarded<float> workspace((way.workspaceBytes(cpu, c) + 63) / 64 * 16);
  way.run(pass)(cpu, c, first.data(), second.data(), result.data(),
                reinterpret_cast<std::byte*>(workspace.data()));
  return result.values();
}

inline ConvolutionResults convolutionResults(Isa isa, const Convolution& c,
                                             const ConvolutionWay& way = convolutionWays()[0]) {
  RandomFloats x(c.imageElements()), filter(c.filterElements()), dy(c.outElements());
  RandomFloats y(c.outElements()), dx(c.imageElements()), dfilter(c.filterElements());
  Buffer workspace(way.workspaceBytes(isa, c));
  auto* const bytes = reinterpret_cast<std::byte*>(workspace.data());
  way.forward(isa, c, x.data(), filter.data(), y.data(), bytes);
  way.backpropInput(isa, c, filter.data(), dy.data(), dx.data(), bytes);
  way.backpropFilter(isa, c, x.data(), dy.data(), dfilter.data(), bytes);
  return {y.values(), dx.values(), dfilter.values()};
}

// A convolution of square images and filters, with the padding of TensorFlow's 'SAME'.
inline Convolution squareConvolution(int64_t batch, int64_t side, int64_t channels, int64_t filter,
                                     int64_t out_channels, int64_t groups = 1) {
  const graph::Window window = graph::paddedSame({{.size = filter}, {.size = filter}}, side, side);
  return Convolution::of({batch, side, side, channels},
                         {filter, filter, channels / groups, out_channels},
                         {batch, side, side, out_channels}, convolutionAttributes(window, groups));
}

}  // namespace dtf::runtime::testing
