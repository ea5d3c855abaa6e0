#pragma once

// Parts that the files of the device suite share.
//
// Tolerances are relative to 1 + |expected|: 2e-6 (some 16 units in the last place of 1) by
// element, 1e-5 where up to some hundred terms in [-1, 1] are summed.

#include <array>
#include <vector>

#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "tests/conformance/device_suite.h"
#include "tests/unit/runtime/step_runner.h"

namespace dtf::runtime::testing {

using graph::Output;

inline constexpr double kElementwise = 2e-6;
inline constexpr double kSums = 1e-5;
inline constexpr std::array<int64_t, 4> kSizes = {1, 3, 17, 100};

// A graph under construction with random values for its placeholders.
struct Case {
  Output floats(Shape shape, float low = -4, float high = 4) {
    const Output x = b.placeholder(graph.uniqueName("x"), DType::kFloat32, shape);
    feeds[x] = randomValues(random, shape.elements(), low, high);
    return x;
  }
  Output integers(DType dtype, Shape shape, int64_t below) {
    const Output x = b.placeholder(graph.uniqueName("i"), dtype, shape);
    feeds[x] = randomIntegers(random, shape.elements(), static_cast<uint64_t>(below));
    return x;
  }
  void expect(DeviceUnderTest& device, std::vector<Output> fetches, double tolerance) {
    for (const bool fuse : {true, false}) {
      expectLikeReference(*device.device, device.kernels, graph, feeds, fetches, tolerance,
                          {.fuse = fuse});
      for (const KernelTable& other : device.alike) {
        expectSameBits(*device.device, device.kernels, other, graph, feeds, fetches,
                       {.fuse = fuse});
      }
    }
  }

  Random random{20};
  graph::Graph graph{graph::standardOps()};
  graph::Builder b{graph};
  Feeds feeds;
};

}  // namespace dtf::runtime::testing
