// The loops give the same bits on every instruction set, write nothing past the end, and lose no
// digits over many rows. The device suite tests the results.

#include "common/runtime/norm_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "common/runtime/processor.h"
#include "common/runtime/vector_loops.h"
#include "tests/unit/runtime/convolution_runner.h"

namespace dtf::runtime {
namespace {

using testing::RandomFloats;

std::vector<float> results(const Processor& cpu, int64_t rows, int64_t channels) {
  const int64_t n = rows * channels;
  RandomFloats x(n), dy(n), scale(channels), offset(channels), y(n), dx(n);
  RandomFloats of_channels[] = {RandomFloats(channels), RandomFloats(channels),
                                RandomFloats(channels), RandomFloats(channels),
                                RandomFloats(channels)};
  RandomFloats of_rows[] = {RandomFloats(rows), RandomFloats(rows)};
  testing::Guarded<float> sums(normSumsBytes(rows, channels) / sizeof(float));
  std::vector<float> all;
  const auto keep = [&all](RandomFloats& values) {
    const std::vector<float> kept = values.values();
    all.insert(all.end(), kept.begin(), kept.end());
  };
  const NormInput in = {rows, channels, 1e-3f, x.data(), scale.data(), offset.data()};
  float *const mean = of_channels[0].data(), *const variance = of_channels[1].data();
  float* const inverse = of_channels[2].data();
  batchNorm(cpu, in, {y.data(), mean, variance, inverse}, sums.data());
  keep(y);
  NormGradient g = {.rows = rows, .channels = channels, .dy = dy.data(), .x = x.data()};
  g.scale = scale.data(), g.mean = mean, g.inverse = inverse;
  g.dx = dx.data(), g.dscale = of_channels[3].data(), g.doffset = of_channels[4].data();
  batchNormGrad(cpu, g, sums.data());
  keep(dx);
  batchNormInference(cpu, in, mean, variance, y.data());
  keep(y);
  for (RandomFloats& values : of_channels) keep(values);
  layerNorm(cpu, in, {y.data(), of_rows[0].data(), nullptr, of_rows[1].data()});
  keep(y);
  g.mean = of_rows[0].data(), g.inverse = of_rows[1].data();
  layerNormGrad(cpu, g, sums.data());
  keep(dx);
  for (RandomFloats& values : of_rows) keep(values);
  keep(of_channels[3]);
  return all;
}

TEST(NormLoops, HaveTheSameBitsOnEveryInstructionSet) {
  for (const Isa isa : supportedIsas()) {
    for (const int64_t rows : {1, 7, 300}) {
      for (const int64_t channels : {1, 5, 16, 67, 130}) {
        SCOPED_TRACE(::testing::Message() << isaName(isa) << " " << rows << " x " << channels);
        EXPECT_EQ(results(isa, rows, channels), results(Isa::kBaseline, rows, channels));
      }
    }
  }
}

TEST(NormLoops, HaveTheSameBitsOnAnyNumberOfThreads) {
  for (const int threads : {2, 3, 5}) {
    ComputePool pool(threads);
    Processor cpu(bestIsa(), &pool);
    cpu.part_work = 1;
    for (const int64_t rows : {1, 129, 1500}) {
      for (const int64_t channels : {1, 16, 67}) {
        SCOPED_TRACE(::testing::Message() << threads << " threads: " << rows << " x " << channels);
        EXPECT_EQ(results(cpu, rows, channels), results(bestIsa(), rows, channels));
      }
    }
  }
}

TEST(NormLoops, ManyRowsLoseNoDigits) {
  constexpr int64_t kRows = 1'000'000;
  std::vector<float> x(kRows), y(kRows);
  for (int64_t i = 0; i < kRows; ++i) x[i] = i % 2 == 0 ? 100.1f : 100.3f;
  const float one = 1, zero = 0;
  float mean = 0, variance = 0, inverse = 0;
  for (const Isa isa : supportedIsas()) {
    std::vector<float> sums(normSumsBytes(kRows, 1) / sizeof(float));
    batchNorm(isa, {kRows, 1, 1e-6f, x.data(), &one, &zero}, {y.data(), &mean, &variance, &inverse},
              sums.data());
    EXPECT_NEAR(mean, 100.2, 2e-4);
    EXPECT_NEAR(variance, 0.01, 1e-5);
  }
}

// Fused or one by one, these give the same bits: a normalisation, the sum in a residual block, the
// relu; and their gradients.
TEST(NormLoops, ARelusJoinedWithThemChangesNoBits) {
  constexpr int64_t kRows = 300, kChannels = 21, kAll = kRows * kChannels;
  using Mask = NormGradient::Mask;
  for (const Isa isa : supportedIsas()) {
    SCOPED_TRACE(isaName(isa));
    const VectorLoops& loops = vectorLoops(isa);
    RandomFloats x(kAll), residual(kAll + 1), dy(kAll + 2), more(kAll + 3), scale(kChannels),
        offset(kChannels + 1);
    RandomFloats mean(kChannels), variance(kChannels), inverse(kChannels), dscale(kChannels),
        doffset(kChannels);
    testing::Guarded<float> sums(normSumsBytes(kRows, kChannels) / sizeof(float));
    for (const bool adds : {false, true}) {
      NormInput in = {kRows, kChannels, 1e-3f, x.data(), scale.data(), offset.data()};
      RandomFloats y(kAll), joined(kAll);
      batchNorm(isa, in, {y.data(), mean.data(), variance.data(), inverse.data()}, sums.data());
      if (adds) loops.add(y.data(), residual.data(), y.data(), kAll);
      loops.relu(y.data(), y.data(), kAll);
      in.relu = true;
      if (adds) in.residual = residual.data();
      batchNorm(isa, in, {joined.data(), mean.data(), variance.data(), inverse.data()},
                sums.data());
      EXPECT_EQ(joined.values(), y.values());

      for (const bool two : {false, true}) {
        RandomFloats d(kAll), dx(kAll), joined_dx(kAll), passed(kAll);
        std::copy_n(dy.data(), kAll, d.data());
        if (two) loops.add(d.data(), more.data(), d.data(), kAll);
        loops.reluGrad(d.data(), y.data(), d.data(), kAll);
        NormGradient g = {.rows = kRows, .channels = kChannels, .dy = d.data(), .x = x.data()};
        g.scale = scale.data(), g.mean = mean.data(), g.inverse = inverse.data();
        g.dx = dx.data(), g.dscale = dscale.data(), g.doffset = doffset.data();
        batchNormGrad(isa, g, sums.data());
        const std::vector<float> of_scale = dscale.values(), of_offset = doffset.values();
        g.dy = dy.data(), g.dy_more = two ? more.data() : nullptr;
        g.mask = adds ? Mask::kFromY : Mask::kFromX;
        g.y = y.data(), g.offset = offset.data();
        g.dx = joined_dx.data(), g.passed = passed.data();
        batchNormGrad(isa, g, sums.data());
        EXPECT_EQ(joined_dx.values(), dx.values());
        EXPECT_EQ(passed.values(), d.values());
        EXPECT_EQ(dscale.values(), of_scale);
        EXPECT_EQ(doffset.values(), of_offset);
      }
    }
  }
}

}  // namespace
}  // namespace dtf::runtime
