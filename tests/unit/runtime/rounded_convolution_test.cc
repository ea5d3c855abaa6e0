#include "common/runtime/rounded_convolution.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "common/base/isa.h"
#include "common/base/random.h"
#include "common/tensor/buffer.h"
#include "tests/unit/runtime/convolution_runner.h"

namespace dtf::runtime {
namespace {

using testing::squareConvolution;

constexpr ConvolutionPass kAllPasses[] = {
    ConvolutionPass::kForward, ConvolutionPass::kBackpropInput, ConvolutionPass::kBackpropFilter};
constexpr ConvolutionWay kWay = {"bfloat16",
                                 true,
                                 roundedConvolutionFits,
                                 roundedConvolutionWorkspaceBytes,
                                 roundedConvolve,
                                 roundedBackpropInput,
                                 roundedBackpropFilter};

// A stride, a dilation and uneven padding that 'same' never has.
Convolution odd(int64_t stride, int64_t dilation) {
  const graph::Window window = {{.size = 3, .stride = stride, .dilation = dilation, .before = 2},
                                {.size = 2, .stride = stride, .dilation = dilation, .after = 1}};
  return Convolution::of({2, 11, 9, 64}, {3, 2, 64, 32},
                         {2, window.height.positions(11), window.width.positions(9), 32},
                         graph::convolutionAttributes(window, 1));
}

std::vector<Convolution> convolutions() {
  return {squareConvolution(2, 9, 32, 3, 32),
          squareConvolution(1, 40, 32, 3, 64),
          squareConvolution(3, 7, 96, 5, 160),
          squareConvolution(2, 8, 24, 1, 40),
          squareConvolution(5, 13, 64, 1, 70),
          odd(1, 1),
          odd(1, 2),
          odd(2, 1)};
}

// Returns numbers that are exact in bfloat16.
std::vector<float> numbers(int64_t n) {
  Random random(static_cast<uint64_t>(n));
  std::vector<float> all(static_cast<size_t>(n));
  for (float& each : all)
    each = std::bit_cast<float>(std::bit_cast<uint32_t>(random.uniform(-1, 1)) & 0xffff0000U);
  return all;
}

std::vector<float> run(const Processor& cpu, ConvolutionPass pass, const Convolution& c,
                       const ConvolutionWay& way) {
  const bool forward = pass == ConvolutionPass::kForward;
  const bool to_filter = pass == ConvolutionPass::kBackpropFilter;
  const std::vector<float> x = numbers(c.imageElements()), filter = numbers(c.filterElements()),
                           dy = numbers(c.outElements());
  std::vector<float> result(forward ? dy.size() : to_filter ? filter.size() : x.size(), NAN);
  Buffer workspace(way.workspaceBytes(cpu, c));
  way.run(pass)(cpu, c, (forward || to_filter ? x : filter).data(), (forward ? filter : dy).data(),
                result.data(), reinterpret_cast<std::byte*>(workspace.data()));
  return result;
}

// Rounding leaves these numbers unchanged, so the products equal float32's; only the order of sums
// differs.
TEST(RoundedConvolution, OfNumbersThatBFloat16HasItIsThatOfFloat32) {
  for (const Isa isa : supportedIsas())
    for (const Convolution& c : convolutions())
      for (const ConvolutionPass pass : kAllPasses) {
        if (!roundedConvolutionFits(pass, c)) continue;
        SCOPED_TRACE(::testing::Message()
                     << isaName(isa) << ' ' << passName(pass) << ' ' << c.height << 'x'
                     << c.channels << " -> " << c.out_channels);
        const std::vector<float> wanted = run(isa, pass, c, convolutionWays()[0]);
        const std::vector<float> made = run(isa, pass, c, kWay);
        ASSERT_EQ(made.size(), wanted.size());
        for (size_t i = 0; i < made.size(); ++i) ASSERT_NEAR(made[i], wanted[i], 1e-4) << i;
      }
}

TEST(RoundedConvolution, HasTheSameBitsOnEverySetAndAnyNumberOfThreads) {
  ComputePool pool(3);
  Processor threads(bestIsa(), &pool);
  threads.part_work = 1;
  for (const Convolution& c : convolutions())
    for (const ConvolutionPass pass : kAllPasses) {
      if (!roundedConvolutionFits(pass, c)) continue;
      const std::vector<float> wanted = run(bestIsa(), pass, c, kWay);
      for (const Isa isa : supportedIsas()) EXPECT_EQ(run(isa, pass, c, kWay), wanted);
      EXPECT_EQ(run(threads, pass, c, kWay), wanted);
    }
}

TEST(RoundedConvolution, FitsWhereRunsOfChannelsAreWholeRowsOfTiles) {
  const auto fits = [](ConvolutionPass pass, const Convolution& c) {
    return roundedConvolutionFits(pass, c);
  };
  const Convolution thin = squareConvolution(1, 8, 24, 3, 64);
  EXPECT_FALSE(fits(ConvolutionPass::kForward, thin));
  EXPECT_TRUE(fits(ConvolutionPass::kBackpropInput, thin));
  EXPECT_FALSE(fits(ConvolutionPass::kBackpropFilter, thin));
  EXPECT_FALSE(fits(ConvolutionPass::kBackpropInput, odd(2, 1))) << "its windows leave gaps";
  EXPECT_FALSE(fits(ConvolutionPass::kForward, squareConvolution(1, 8, 64, 3, 64, 2)));
}

TEST(RoundedConvolution, IsChosenWhereFactorsAreRoundedAndItPays) {
  const Convolution deep = squareConvolution(1, 8, 256, 3, 256);
  const Convolution first = squareConvolution(1, 8, 32, 3, 32);
  const Processor cpu(bestIsa());
  const auto chosen = [](const Convolution& c, const Processor& on) {
    const ChosenWay made = chosenWay(tableRule(true), ConvolutionPass::kForward, c, on);
    EXPECT_EQ(made.cpu.rounds_factors, made.way.name == "bfloat16");
    return made.way.name;
  };
  EXPECT_EQ(chosen(deep, cpu.rounding()), "bfloat16");
  EXPECT_EQ(chosen(deep, cpu), "winograd");
  EXPECT_EQ(chosen(first, cpu.rounding()), "winograd");
}

TEST(RoundedConvolution, NeedsAWorkspaceThatDoesNotGrowWithTheImages) {
  const Processor cpu(bestIsa());
  EXPECT_LT(roundedConvolutionWorkspaceBytes(cpu, squareConvolution(4096, 56, 512, 3, 512)),
            4'000'000u);
  EXPECT_LT(roundedConvolutionWorkspaceBytes(cpu, squareConvolution(4096, 56, 512, 1, 512)),
            4'000'000u);
}

}  // namespace
}  // namespace dtf::runtime
