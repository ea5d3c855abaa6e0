// Pooling gives the same bits on every instruction set, and writes nothing past the end. The device
// suite tests the results.

#include "common/runtime/pooling.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/runtime/convolution_runner.h"

namespace dtf::runtime {
namespace {

Pooling pooling(const Shape& x, const graph::Window& window) {
  const Shape y = {x.dim(0), window.height.positions(x.dim(1)), window.width.positions(x.dim(2)),
                   x.dim(3)};
  return Pooling::of(x, y, poolingAttributes(window));
}

using testing::RandomFloats;

std::vector<float> results(Isa isa, const Pooling& p) {
  const PoolingLoops& loops = poolingLoops(isa);
  const int64_t out = p.batch * p.out_height * p.out_width * p.channels;
  const int64_t in = p.batch * p.height * p.width * p.channels;
  RandomFloats x(in), dy(out), y(out), wide(out), average(out), dx(in), dx_wide(in), dx_average(in);
  testing::Guarded<uint8_t> argmax(static_cast<size_t>(out));
  testing::Guarded<int32_t> argmax_wide(static_cast<size_t>(out));
  loops.maxPool(p, x.data(), y.data(), argmax.data());
  loops.maxPoolWide(p, x.data(), wide.data(), argmax_wide.data());
  loops.avgPool(p, x.data(), average.data());
  for (int64_t i = 0; i < out; ++i) EXPECT_EQ(argmax.data()[i], argmax_wide.data()[i]);
  loops.maxPoolGrad(p, dy.data(), argmax.data(), dx.data());
  loops.maxPoolGradWide(p, dy.data(), argmax_wide.data(), dx_wide.data());
  loops.avgPoolGrad(p, dy.data(), dx_average.data());
  RandomFloats bias(p.channels), fused(out), dx_fused(in), dbias(p.channels);
  loops.biasReluMaxPool(p, x.data(), bias.data(), fused.data(), argmax.data());
  loops.maxPoolGrad(p, dy.data(), argmax.data(), dx_fused.data());
  loops.openGradSum(p, 0, p.channels, dy.data(), argmax.data(), dbias.data());
  std::vector<float> all;
  for (RandomFloats* part :
       {&y, &wide, &average, &dx, &dx_wide, &dx_average, &fused, &dx_fused, &dbias}) {
    const std::vector<float> values = part->values();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST(Pooling, HasTheSameBitsOnEveryInstructionSet) {
  const graph::Window overlapping = {{3, 2, 1, 1, 1}, {2, 1, 1, 0, 1}};
  const graph::Window halving = {{2, 2}, {2, 2}};
  for (const Isa isa : supportedIsas()) {
    for (const int64_t channels : {1, 4, 7, 16, 35}) {
      for (const graph::Window& window : {overlapping, halving}) {
        SCOPED_TRACE(::testing::Message() << isaName(isa) << ", " << channels << " channels");
        const Pooling p = pooling({2, 6, 5, channels}, window);
        EXPECT_EQ(results(isa, p), results(Isa::kBaseline, p));
      }
    }
  }
}

}  // namespace
}  // namespace dtf::runtime
