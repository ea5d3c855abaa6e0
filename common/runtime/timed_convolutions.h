#pragma once

// The fastest way to compute a convolution on this machine, found by running them all.

#include <span>
#include <string>

#include "common/runtime/convolution_ways.h"

namespace dtf::runtime {

// Returns the key of a stored choice: "forward 14x14x32 5x5 s1x1 p2,2,2,2 d1x1 g1 -> 64". The
// number of images is not part of it, so that an evaluation uses the way of the training.
std::string convolutionKey(ConvolutionPass pass, const Convolution& c);

// One way, and the time of a call: the median of several.
struct TimedWay {
  const ConvolutionWay* way = nullptr;
  double seconds = 0;
};

// Returns the fastest of `timed`, or `expected`, which must be among them, unless another one is
// faster by kFasterBy: below that the choice would depend on noise, and differ between machines.
inline constexpr double kFasterBy = 0.05;
const ConvolutionWay& fastestOf(std::span<const TimedWay> timed, const ConvolutionWay& expected);

// Runs all ways that fit, in turns, on some images of `c`; `expected` is fastestWay().
// Without `winograd`, ways that round differently are excluded.
// Blocks: for about ten calls of each way.
const ConvolutionWay& fastestByTiming(ConvolutionPass pass, const Convolution& c,
                                      const Processor& cpu, bool winograd);

}  // namespace dtf::runtime
