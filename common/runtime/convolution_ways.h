#pragma once

// The CPU's ways to compute a convolution, in one list for choosing a kernel, for the tests and for
// dtf-bench.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "common/runtime/convolution.h"

namespace dtf::runtime {

enum class ConvolutionPass : uint8_t { kForward, kBackpropInput, kBackpropFilter };

// "forward", "backprop input", "backprop filter"
std::string_view passName(ConvolutionPass pass);

// One way, for all passes that it `fits`. Immutable.
struct ConvolutionWay {
  // `first` and `second` are the inputs of the pass, `result` its output, in the order of
  // convolution.h.
  using Run = void (*)(const Processor& cpu, const Convolution& c, const float* first,
                       const float* second, float* result, std::byte* workspace);

  std::string_view name;
  bool rounds_otherwise;  // rounds differently from a sum of products
  bool (*fits)(ConvolutionPass pass, const Convolution& c);
  size_t (*workspaceBytes)(const Processor& cpu, const Convolution& c);
  Run forward, backpropInput, backpropFilter;  // nullptr if it never fits

  Run run(ConvolutionPass pass) const;
};

// The first way fits any convolution.
std::span<const ConvolutionWay> convolutionWays();

// Returns the way that measurements found fastest for such a pass; see README.md. A pure function
// of its arguments, so that all workers of a job choose alike. Without `winograd` it only returns
// ways that round like a sum of products.
const ConvolutionWay& fastestWay(ConvolutionPass pass, const Convolution& c, bool winograd);

// Chooses the way of a pass for the processor `cpu`.
using ConvolutionRule = std::function<const ConvolutionWay&(
    ConvolutionPass pass, const Convolution& c, const Processor& cpu)>;

// Returns false if DTF_WINOGRAD=0 is in the environment, which must then be set for all workers of
// a job.
// Errors: kUsage for a value other than 0 and 1.
bool winogradAllowed();

// A way, and the processor that computes it.
struct ChosenWay {
  const ConvolutionWay& way;
  Processor cpu;
};

// If the processor rounds factors, returns rounded_convolution.h where it fits and pays; else the
// choice of `rule`, without rounding.
ChosenWay chosenWay(const ConvolutionRule& rule, ConvolutionPass pass, const Convolution& c,
                    const Processor& cpu);

// Returns fastestWay() as a rule: the same for all workers on any host.
ConvolutionRule tableRule(bool winograd = winogradAllowed());

}  // namespace dtf::runtime
