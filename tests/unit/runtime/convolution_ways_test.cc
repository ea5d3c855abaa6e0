#include "common/runtime/convolution_ways.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "common/base/error.h"
#include "tests/unit/runtime/convolution_runner.h"

namespace dtf::runtime {
namespace {

using testing::squareConvolution;

constexpr ConvolutionPass kPasses[] = {ConvolutionPass::kForward, ConvolutionPass::kBackpropInput,
                                       ConvolutionPass::kBackpropFilter};

TEST(ConvolutionWays, TheFirstTakesAll) {
  for (const ConvolutionPass pass : kPasses) {
    EXPECT_TRUE(convolutionWays()[0].fits(pass, squareConvolution(1, 5, 6, 2, 9, 3)));
    EXPECT_TRUE(convolutionWays()[0].fits(pass, squareConvolution(0, 5, 6, 2, 9)));
  }
}

TEST(ConvolutionWays, AFastestOneFits) {
  for (const Convolution& c :
       {squareConvolution(2, 14, 32, 5, 64), squareConvolution(2, 14, 16, 3, 16),
        squareConvolution(2, 14, 1, 5, 32), squareConvolution(2, 14, 30, 1, 7)}) {
    for (const ConvolutionPass pass : kPasses) {
      for (const bool winograd : {false, true}) {
        const ConvolutionWay& way = fastestWay(pass, c, winograd);
        EXPECT_TRUE(way.fits(pass, c)) << way.name;
        EXPECT_NE(way.run(pass), nullptr) << way.name;
        if (!winograd) {
          EXPECT_NE(way.name, "winograd");
        }
      }
    }
  }
}

TEST(ConvolutionWays, WinogradIsForImagesThatFillItsTiles) {
  const auto chosen = [](int64_t side, int64_t window) {
    const Convolution c = squareConvolution(8, side, 32, window, 32);
    return fastestWay(ConvolutionPass::kForward, c, true).name;
  };
  EXPECT_EQ(chosen(7, 3), "winograd");
  EXPECT_EQ(chosen(14, 5), "winograd");
  const Convolution huge = squareConvolution(8, 14, 1024, 3, 1024);
  EXPECT_EQ(fastestWay(ConvolutionPass::kForward, huge, true).name, "gathered") << "151 MB";
  EXPECT_EQ(chosen(2, 3), "framed");
  EXPECT_EQ(chosen(1, 5), "framed");
}

TEST(ConvolutionWays, FirstAndStridedLayersAreFramed) {
  const auto chosen = [](ConvolutionPass pass, int64_t channels, int64_t out_channels) {
    return fastestWay(pass, squareConvolution(8, 28, channels, 7, out_channels), true).name;
  };
  EXPECT_EQ(chosen(ConvolutionPass::kForward, 3, 64), "framed");
  EXPECT_EQ(chosen(ConvolutionPass::kForward, 64, 128), "framed");
  EXPECT_EQ(chosen(ConvolutionPass::kForward, 64, 256), "gathered");
  EXPECT_EQ(chosen(ConvolutionPass::kBackpropFilter, 32, 256), "framed");
  EXPECT_EQ(chosen(ConvolutionPass::kBackpropFilter, 64, 64), "gathered");
  EXPECT_EQ(chosen(ConvolutionPass::kBackpropInput, 3, 64), "gathered");
}

void expectTheSameBits(const Processor& cpu, const Convolution& c, const ConvolutionWay& way,
                       ConvolutionPass pass) {
  ASSERT_TRUE(way.fits(pass, c)) << way.name;
  EXPECT_EQ(testing::passResult(cpu, pass, c, way), testing::passResult(cpu.isa, pass, c, way))
      << cpu.threads() << " threads, " << isaName(cpu.isa) << ", " << way.name << ", "
      << passName(pass) << ", " << c.batch << " x " << c.height << " x " << c.channels;
}

void expectTheSameBits(const Processor& cpu, const Convolution& c) {
  for (const ConvolutionWay& way : convolutionWays()) {
    for (const ConvolutionPass pass : kPasses) {
      if (way.fits(pass, c)) expectTheSameBits(cpu, c, way, pass);
    }
  }
}

// Several blocks of images, fewer images than threads, odd numbers of channels, groups, no
// gathering.
TEST(ConvolutionWays, GiveTheSameBitsOnAnyNumberOfThreads) {
  for (const int threads : {2, 3, 5}) {
    ComputePool pool(threads);
    for (const Isa isa : supportedIsas()) {
      Processor cpu(isa, &pool);
      cpu.part_work = 1;
      for (const Convolution& c :
           {squareConvolution(1, 5, 3, 3, 4), squareConvolution(4, 14, 32, 5, 32),
            squareConvolution(9, 8, 16, 3, 16), squareConvolution(4, 23, 1, 5, 35),
            squareConvolution(3, 12, 8, 1, 100), squareConvolution(2, 20, 6, 3, 9, 3),
            squareConvolution(3, 9, 20, 3, 20, 20), squareConvolution(20, 6, 9, 2, 130)}) {
        expectTheSameBits(cpu, c);
      }
    }
  }
}

TEST(ConvolutionWays, GiveTheSameBitsOnThreadsWithSeveralBlocksEach) {
  ComputePool pool(2);
  expectTheSameBits({bestIsa(), &pool}, squareConvolution(6, 28, 64, 3, 64));
  expectTheSameBits({bestIsa(), &pool}, squareConvolution(2, 33, 70, 3, 97));
  // The second thread has 8 columns of the filter's gradient.
  expectTheSameBits({bestIsa(), &pool}, squareConvolution(2, 12, 64, 3, 40));
  expectTheSameBits({bestIsa(), &pool}, squareConvolution(2, 12, 240, 1, 40));
  // A filter with a large transform: blocks of 96 tiles, and one of 21.
  expectTheSameBits({bestIsa(), &pool}, squareConvolution(13, 12, 96, 3, 96));
}

// A block of 480 tiles, and one of 272, with products that aren't split along their sums.
TEST(ConvolutionWays, ALastBlockThatIsNotSplitFitsTheWorkspace) {
  ComputePool pool(5);
  const auto way = std::ranges::find(convolutionWays(), "winograd", &ConvolutionWay::name);
  ASSERT_NE(way, convolutionWays().end());
  expectTheSameBits({bestIsa(), &pool}, squareConvolution(47, 14, 256, 3, 256), *way,
                    ConvolutionPass::kBackpropFilter);
}

TEST(ConvolutionWays, TheEnvironmentTurnsWinogradOff) {
  const auto with = [](const char* value) {
    setenv("DTF_WINOGRAD", value, 1);
    const bool allowed = winogradAllowed();
    unsetenv("DTF_WINOGRAD");
    return allowed;
  };
  EXPECT_FALSE(with("0"));
  EXPECT_TRUE(with("1"));
  EXPECT_TRUE(winogradAllowed()) << "unset";
  setenv("DTF_WINOGRAD", "off", 1);
  EXPECT_THROW(winogradAllowed(), Error);
  unsetenv("DTF_WINOGRAD");
}

}  // namespace
}  // namespace dtf::runtime
