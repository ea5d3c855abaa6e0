// Random numbers; the semantics are in common/graph/standard_random_ops.cc.

#include <cmath>

#include "gpu/element_kernels.h"
#include "gpu/philox.h"

namespace dtf::gpu {
namespace {

constexpr uint32_t kRandomOpsStream =
    0x12000000;  // base/random_streams.h: what the seed is used for
constexpr int64_t kDrawnAtOnce = 4;

struct UniformOf {
  DTF_HOST_DEVICE void operator()(const uint32_t* drawn, float* y) const {
    for (int i = 0; i < kDrawnAtOnce; ++i) y[i] = static_cast<float>(drawn[i] >> 8) * 0x1p-24f;
  }
};
// In double precision, like the CPU: the same numbers, except where the two libraries round
// differently.
struct NormalOf {
  DTF_HOST_DEVICE void operator()(const uint32_t* drawn, float* y) const {
    for (int i = 0; i < kDrawnAtOnce; i += 2) {
      const double radius = sqrt(-2 * log((drawn[i] + 1.0) * 0x1p-32));
      const double angle = 6.283185307179586 * (drawn[i + 1] * 0x1p-32);
      y[i] = static_cast<float>(radius * cos(angle));
      y[i + 1] = static_cast<float>(radius * sin(angle));
    }
  }
};

// A block of Philox, for four neighbouring elements.
template <class F>
struct DrawAt {
  const int32_t* seed;  // two numbers of 64 bits, possibly aligned to only 4 bytes
  float* y;
  int64_t n;
  uint32_t stream;
  DTF_HOST_DEVICE void operator()(int64_t block) const {
    Philox numbers = {{static_cast<uint32_t>(block), static_cast<uint32_t>(seed[2]),
                       static_cast<uint32_t>(seed[3]), stream}};
    numbers.draw(static_cast<uint32_t>(seed[0]), static_cast<uint32_t>(seed[1]));
    float made[kDrawnAtOnce];
    F()(numbers.c, made);
    const int64_t first = block * kDrawnAtOnce;
    for (int64_t i = 0; i < kDrawnAtOnce && first + i < n; ++i) y[first + i] = made[i];
  }
};

template <class F>
class RandomKernel final : public Kernel {
 public:
  explicit RandomKernel(const Operation& o)
      : n_(o.outputs[0].elements()),
        stream_(kRandomOpsStream | static_cast<uint32_t>(o.integer("stream"))) {}
  void launch(Device& device, const Arguments& a) override {
    forElements(device, (n_ + kDrawnAtOnce - 1) / kDrawnAtOnce,
                DrawAt<F>{a.in<int32_t>(0), a.out(0), n_, stream_});
  }

 private:
  const int64_t n_;
  const uint32_t stream_;
};

}  // namespace

void addRandomKernels(KernelTable& table) {
  table["StatelessRandomUniform"] = make<RandomKernel<UniformOf>>;
  table["StatelessRandomNormal"] = make<RandomKernel<NormalOf>>;
}

}  // namespace dtf::gpu
