// Random numbers; the semantics are in graph/standard_random_ops.cc.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "common/base/random.h"
#include "common/base/random_streams.h"
#include "common/runtime/cpu_kernels_internal.h"

namespace dtf::runtime {
namespace {

constexpr int64_t kBlock = 4;  // elements per block of Philox

using Block = std::array<uint32_t, 4>;

void uniformOf(const Block& drawn, float* y) {
  for (size_t i = 0; i < drawn.size(); ++i) y[i] = static_cast<float>(drawn[i] >> 8) * 0x1.0p-24F;
}

void normalOf(const Block& drawn, float* y) {
  for (size_t i = 0; i < drawn.size(); i += 2) {
    const double radius = std::sqrt(-2 * std::log((drawn[i] + 1.0) * 0x1p-32));
    const double angle = 6.283185307179586 * (drawn[i + 1] * 0x1p-32);
    y[i] = static_cast<float>(radius * std::cos(angle));
    y[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
}

KernelFactory drawing(const Processor& cpu, void (*numbersOf)(const Block&, float*)) {
  return [cpu, numbersOf](const Operation& o) {
    constexpr auto kUse = static_cast<uint32_t>(streamOf(RandomStream::kRandomOps, 0) >> 32);
    const auto stream = kUse | static_cast<uint32_t>(o.attributeOr<int64_t>("stream", 0));
    const auto run = [cpu, numbersOf, stream,
                      n = o.output_specs[0].shape.elements()](const KernelArguments& a) {
      uint64_t seed[2];  // the bound memory may be unaligned
      std::memcpy(seed, a.inputs[0], sizeof seed);
      const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
      forElements(cpu, n, kFunctionWork, [&](int64_t first, int64_t count) {
        for (int64_t i = first; i < first + count; i += kBlock) {
          float numbers[kBlock];
          numbersOf(
              philox({static_cast<uint32_t>(i / kBlock), low(seed[1]), low(seed[1] >> 32), stream},
                     {low(seed[0]), low(seed[0] >> 32)}),
              numbers);
          std::copy_n(numbers, std::min(kBlock, first + count - i), out(a, 0) + i);
        }
      });
    };
    return makeKernel(run, kOverwritesNothing);
  };
}
static_assert(kElementGrain % kBlock == 0);  // ranges start with a block

}  // namespace

void addRandomKernels(KernelTable& table, const Processor& cpu) {
  table.add("StatelessRandomUniform", DeviceType::kCpu, drawing(cpu, uniformOf));
  table.add("StatelessRandomNormal", DeviceType::kCpu, drawing(cpu, normalOf));
}

}  // namespace dtf::runtime
