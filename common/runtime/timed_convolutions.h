#pragma once

// Which way of computing a convolution is the fastest here, found by running them all.

#include <span>
#include <string>

#include "common/runtime/convolution_ways.h"

namespace dtf::runtime {

// What a choice is remembered by: "forward 14x14x32 5x5 s1x1 p2,2,2,2 d1x1 g1 -> 64". The number of
// images is not part of it, so that an evaluation goes the way of the training.
std::string convolutionKey(ConvolutionPass pass, const Convolution& c);

// One of the ways and what a call took: the median of several.
struct TimedWay {
  const ConvolutionWay* way = nullptr;
  double seconds = 0;
};

// The fastest of `timed`; `expected`, which is among them, unless another takes kFasterBy less:
// what the machine's noise decides had better be decided the same everywhere.
inline constexpr double kFasterBy = 0.05;
const ConvolutionWay& fastestOf(std::span<const TimedWay> timed, const ConvolutionWay& expected);

// Runs all ways that fit, in turns, on some images of `c`; `expected` is that of fastestWay().
// Without `winograd` none that rounds otherwise is among them.
// Blocks: for some ten calls of each way.
const ConvolutionWay& fastestByTiming(ConvolutionPass pass, const Convolution& c,
                                      const Processor& cpu, bool winograd);

}  // namespace dtf::runtime
