#include "common/runtime/convolution_ways.h"

#include <cstdlib>
#include <string>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/runtime/depthwise_convolution.h"
#include "common/runtime/framed_convolution.h"
#include "common/runtime/rounded_convolution.h"
#include "common/runtime/winograd.h"

namespace dtf::runtime {
namespace {

constexpr ConvolutionWay kWays[] = {
    {"gathered", false, [](ConvolutionPass, const Convolution&) { return true; },
     convolutionWorkspaceBytes, convolve, convolveBackpropInput, convolveBackpropFilter},
    {"winograd", true, [](ConvolutionPass, const Convolution& c) { return winogradFits(c); },
     winogradWorkspaceBytes, winogradConvolve, winogradBackpropInput, winogradBackpropFilter},
    {"framed", false,
     [](ConvolutionPass pass, const Convolution& c) {
       return pass != ConvolutionPass::kBackpropInput && framedConvolutionFits(c);
     },
     framedConvolutionWorkspaceBytes, framedConvolve, nullptr, framedConvolveBackpropFilter},
    {"depthwise", false,
     [](ConvolutionPass, const Convolution& c) { return depthwiseConvolutionFits(c); },
     [](const Processor&, const Convolution&) { return size_t{0}; }, depthwiseConvolve,
     depthwiseBackpropInput, depthwiseBackpropFilter},
};
constexpr const ConvolutionWay& kGathered = kWays[0];
constexpr const ConvolutionWay& kWinograd = kWays[1];
constexpr const ConvolutionWay& kFramed = kWays[2];
constexpr const ConvolutionWay& kDepthwise = kWays[3];

// Excluded from rules: its results differ.
constexpr ConvolutionWay kRounded = {"bfloat16",
                                     true,
                                     roundedConvolutionFits,
                                     roundedConvolutionWorkspaceBytes,
                                     roundedConvolve,
                                     roundedBackpropInput,
                                     roundedBackpropFilter};

// The rows of wider filters are too far apart for the caches. With more input channels, dy is read
// again for every few of the filter's many taps.
constexpr int64_t kFramedOutChannels = 128;
constexpr int64_t kFramedGradientChannels = 32;

bool framedPays(ConvolutionPass pass, const Convolution& c) {
  if (pass == ConvolutionPass::kForward) return c.out_channels <= kFramedOutChannels;
  return c.channels <= kFramedGradientChannels;
}

// A transformed filter has 36 elements for each pair of channels.
constexpr int64_t kWinogradChannelPairs = 512 * 512;

// If images hardly fill their tiles, Winograd's transforms cost more than they save. All measured
// layers that pay save more than twice.
bool winogradPays(const Convolution& c) {
  const int64_t plain = c.window.height.size * c.window.width.size * c.pixels();
  return c.channels * c.out_channels <= kWinogradChannelPairs &&
         2 * plain >= 3 * winogradMultiplications(c);
}

}  // namespace

std::string_view passName(ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::kForward:
      return "forward";
    case ConvolutionPass::kBackpropInput:
      return "backprop input";
    case ConvolutionPass::kBackpropFilter:
      return "backprop filter";
  }
  DTF_CHECK(false);
  return {};
}

ConvolutionWay::Run ConvolutionWay::run(ConvolutionPass pass) const {
  const Run chosen = pass == ConvolutionPass::kForward         ? forward
                     : pass == ConvolutionPass::kBackpropInput ? backpropInput
                                                               : backpropFilter;
  DTF_CHECK_MSG(chosen != nullptr, std::string(name) + " has no " + std::string(passName(pass)));
  return chosen;
}

std::span<const ConvolutionWay> convolutionWays() {
  return kWays;
}

const ConvolutionWay& fastestWay(ConvolutionPass pass, const Convolution& c, bool winograd) {
  if (kDepthwise.fits(pass, c)) return kDepthwise;
  if (winograd && kWinograd.fits(pass, c) && winogradPays(c)) return kWinograd;
  return kFramed.fits(pass, c) && framedPays(pass, c) ? kFramed : kGathered;
}

bool winogradAllowed() {
  const char* const value = std::getenv("DTF_WINOGRAD");
  if (value == nullptr || std::string_view(value) == "1") return true;
  if (std::string_view(value) == "0") return false;
  throw Error(ErrorCode::kUsage, "DTF_WINOGRAD must be 0 or 1, not '" + std::string(value) + "'");
}

ChosenWay chosenWay(const ConvolutionRule& rule, ConvolutionPass pass, const Convolution& c,
                    const Processor& cpu) {
  if (cpu.rounds_factors && kRounded.fits(pass, c) && roundedConvolutionPays(pass, c))
    return {kRounded, cpu};
  const Processor exact = cpu.rounding(false);
  return {rule(pass, c, exact), exact};
}

ConvolutionRule tableRule(bool winograd) {
  return [winograd](ConvolutionPass pass, const Convolution& c,
                    const Processor&) -> const ConvolutionWay& {
    return fastestWay(pass, c, winograd);
  };
}

}  // namespace dtf::runtime
