// How convolutions are computed; the device suite tests their results.

#include "common/runtime/convolution.h"

#include <gtest/gtest.h>

#include "tests/unit/runtime/convolution_runner.h"

namespace dtf::runtime {
namespace {

using testing::convolutionResults;
using testing::squareConvolution;

TEST(Convolution, HasTheSameBitsOnEverySetWithFusedMultiplyAdd) {
  if (bestIsa() < Isa::kV4) GTEST_SKIP() << "one such set on this machine";
  for (const Convolution& c :
       {squareConvolution(2, 9, 5, 3, 7), squareConvolution(3, 12, 8, 1, 20),
        squareConvolution(1, 40, 6, 3, 9, 3), squareConvolution(2, 33, 1, 5, 32)}) {
    EXPECT_EQ(convolutionResults(Isa::kV3, c), convolutionResults(Isa::kV4, c));
  }
}

TEST(Convolution, NeedsAWorkspaceThatDoesNotGrowWithTheImages) {
  for (const Isa isa : supportedIsas()) {
    EXPECT_LT(convolutionWorkspaceBytes(isa, squareConvolution(4096, 224, 3, 7, 64)), 4'000'000u);
    EXPECT_LT(convolutionWorkspaceBytes(isa, squareConvolution(4096, 56, 512, 3, 512)), 6'000'000u);
    EXPECT_LT(convolutionWorkspaceBytes(isa, squareConvolution(4096, 56, 512, 1, 512)), 4'000'000u);
  }
}

TEST(ConvolutionDeathTest, RefusesShapesThatDoNotFit) {
  EXPECT_DEATH(Convolution::of({1, 5, 5, 2}, {3, 3, 2, 4}, {1, 3, 4, 4},
                               graph::convolutionAttributes({}, 1)),
               "positions");
}

}  // namespace
}  // namespace dtf::runtime
