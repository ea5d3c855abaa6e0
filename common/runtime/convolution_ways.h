#pragma once

// The ways in which the CPU computes a convolution, in one list: what is chosen for a kernel, what
// the tests compare, and what dtf-bench measures.

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
  // The two tensors that the pass reads, the one that it makes, in the order of convolution.h.
  using Run = void (*)(const Processor& cpu, const Convolution& c, const float* first,
                       const float* second, float* result, std::byte* workspace);

  std::string_view name;
  bool rounds_otherwise;  // than a sum of products does
  bool (*fits)(ConvolutionPass pass, const Convolution& c);
  size_t (*workspaceBytes)(const Processor& cpu, const Convolution& c);
  Run forward, backpropInput, backpropFilter;  // nullptr for one that never fits

  Run run(ConvolutionPass pass) const;
};

// The first takes any convolution.
std::span<const ConvolutionWay> convolutionWays();

// The way that was the fastest for such a pass where it was measured; see README.md. A pure
// function of its arguments, so that all workers of a job choose alike. Without `winograd` none is
// chosen that rounds otherwise than a sum of products does.
const ConvolutionWay& fastestWay(ConvolutionPass pass, const Convolution& c, bool winograd);

// Chooses the way of a pass; `cpu` is what will compute it.
using ConvolutionRule = std::function<const ConvolutionWay&(
    ConvolutionPass pass, const Convolution& c, const Processor& cpu)>;

// False when the environment says DTF_WINOGRAD=0, as it then must for all workers of a job.
// Errors: kUsage for a value other than 0 and 1.
bool winogradAllowed();

// A way, and the processor that computes it.
struct ChosenWay {
  const ConvolutionWay& way;
  Processor cpu;
};

// Where the processor rounds factors that of rounded_convolution.h, if it fits and pays; else what
// `rule` chooses, without rounding.
ChosenWay chosenWay(const ConvolutionRule& rule, ConvolutionPass pass, const Convolution& c,
                    const Processor& cpu);

// fastestWay(), the same for all workers wherever they are.
ConvolutionRule tableRule(bool winograd = winogradAllowed());

}  // namespace dtf::runtime
