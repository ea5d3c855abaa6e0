// What convolutions compute is tested as kernels, by the device suite. Here: how they compute it.

#include "common/runtime/convolution.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/base/random.h"
#include "common/tensor/buffer.h"
#include "tests/unit/runtime/guarded_memory.h"

namespace dtf::runtime {
namespace {

Convolution square(int64_t batch, int64_t side, int64_t channels, int64_t filter,
                   int64_t out_channels, int64_t groups = 1) {
  graph::Window window = {{.size = filter}, {.size = filter}};
  window = paddedSame(window, side, side);
  return Convolution::of({batch, side, side, channels},
                         {filter, filter, channels / groups, out_channels},
                         {batch, side, side, out_channels}, convolutionAttributes(window, groups));
}

struct Results {
  std::vector<float> y, dx, dfilter;
  bool operator==(const Results&) const = default;
};

// Everything ends where inaccessible memory begins, and nothing is zero before.
Results results(Isa isa, const Convolution& c) {
  const auto memory = [](int64_t n) {
    testing::Guarded<float> made(static_cast<size_t>(n));
    Random random(static_cast<uint64_t>(n));
    for (int64_t i = 0; i < n; ++i) made.data()[i] = random.uniform(-1, 1);
    return std::vector<float>(made.data(), made.data() + n);
  };
  testing::Guarded<float> x(memory(c.imageElements())), filter(memory(c.filterElements()));
  testing::Guarded<float> dy(memory(c.outElements()));
  testing::Guarded<float> y(std::vector<float>(static_cast<size_t>(c.outElements()), 9));
  testing::Guarded<float> dx(std::vector<float>(static_cast<size_t>(c.imageElements()), 9));
  testing::Guarded<float> df(std::vector<float>(static_cast<size_t>(c.filterElements()), 9));
  Buffer workspace(convolutionWorkspaceBytes(isa, c));
  auto* const bytes = reinterpret_cast<std::byte*>(workspace.data());
  convolve(isa, c, x.data(), filter.data(), y.data(), bytes);
  convolveBackpropInput(isa, c, filter.data(), dy.data(), dx.data(), bytes);
  convolveBackpropFilter(isa, c, x.data(), dy.data(), df.data(), bytes);
  return {{y.data(), y.data() + c.outElements()},
          {dx.data(), dx.data() + c.imageElements()},
          {df.data(), df.data() + c.filterElements()}};
}

TEST(Convolution, HasTheSameBitsOnEverySetWithFusedMultiplyAdd) {
  if (bestIsa() < Isa::kV4) GTEST_SKIP() << "one such set on this machine";
  for (const Convolution& c : {square(2, 9, 5, 3, 7), square(3, 12, 8, 1, 20),
                               square(1, 40, 6, 3, 9, 3), square(2, 33, 1, 5, 32)}) {
    EXPECT_EQ(results(Isa::kV3, c), results(Isa::kV4, c));
  }
}

TEST(Convolution, NeedsAWorkspaceThatDoesNotGrowWithTheImages) {
  for (const Isa isa : supportedIsas()) {
    EXPECT_LT(convolutionWorkspaceBytes(isa, square(4096, 224, 3, 7, 64)), 4'000'000u);
    EXPECT_LT(convolutionWorkspaceBytes(isa, square(4096, 56, 512, 3, 512)), 6'000'000u);
    EXPECT_LT(convolutionWorkspaceBytes(isa, square(4096, 56, 512, 1, 512)), 4'000'000u);
  }
}

TEST(ConvolutionDeathTest, RefusesShapesThatDoNotFit) {
  EXPECT_DEATH(Convolution::of({1, 5, 5, 2}, {3, 3, 2, 4}, {1, 3, 4, 4},
                               graph::convolutionAttributes({}, 1)),
               "positions");
}

}  // namespace
}  // namespace dtf::runtime
