// Elementwise activations and losses; the semantics are in common/graph/standard_nn_ops.cc. NaN
// passes through all of them, so that a broken training shows in its loss.

#include <cmath>

#include "gpu/packed_kernels.h"
#include "gpu/philox.h"

namespace dtf::gpu {
namespace {

DTF_HOST_DEVICE inline float sigmoidOf(float x) {
  return 1.0f / (1.0f + expf(-x));
}
DTF_HOST_DEVICE inline float clampTo(float x, float low, float high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}

struct ReluOf {
  DTF_HOST_DEVICE float operator()(float x) const { return x < 0 ? 0 : x; }
};
struct ReluGradOf {
  DTF_HOST_DEVICE float operator()(float dy, float y) const { return y <= 0 ? 0 : dy; }
};
struct Relu6Of {
  DTF_HOST_DEVICE float operator()(float x) const { return clampTo(x, 0, 6); }
};
struct Relu6GradOf {
  DTF_HOST_DEVICE float operator()(float dy, float y) const { return y <= 0 || y >= 6 ? 0 : dy; }
};
struct SigmoidOf {
  DTF_HOST_DEVICE float operator()(float x) const { return sigmoidOf(x); }
};
struct SigmoidGradOf {
  DTF_HOST_DEVICE float operator()(float dy, float y) const { return dy * y * (1.0f - y); }
};
struct TanhOf {
  DTF_HOST_DEVICE float operator()(float x) const { return tanhf(x); }
};
struct TanhGradOf {
  DTF_HOST_DEVICE float operator()(float dy, float y) const { return dy * (1.0f - y * y); }
};
struct EluOf {
  DTF_HOST_DEVICE float operator()(float x) const { return x > 0 ? x : expf(x) - 1.0f; }
};
struct EluGradOf {
  DTF_HOST_DEVICE float operator()(float dy, float y) const { return y > 0 ? dy : dy * (y + 1.0f); }
};
struct SiluOf {
  DTF_HOST_DEVICE float operator()(float x) const { return x * sigmoidOf(x); }
};
struct SiluGradOf {
  DTF_HOST_DEVICE float operator()(float dy, float x) const {
    const float s = sigmoidOf(x);
    return dy * (s * (1.0f + x * (1.0f - s)));
  }
};
struct SoftplusOf {
  DTF_HOST_DEVICE float operator()(float x) const {
    return (x < 0 ? 0 : x) + log1pf(expf(x < 0 ? x : -x));
  }
};
struct SoftplusGradOf {
  DTF_HOST_DEVICE float operator()(float dy, float x) const { return dy * sigmoidOf(x); }
};
struct AbsOf {
  DTF_HOST_DEVICE float operator()(float x) const { return x < 0 ? -x : x; }
};
struct AbsGradOf {
  DTF_HOST_DEVICE float operator()(float dy, float x) const {
    return x == 0 ? 0 : x < 0 ? -dy : dy;
  }
};

struct LeakyReluOf {
  float alpha;
  explicit LeakyReluOf(const Operation& o) : alpha(static_cast<float>(o.number("alpha"))) {}
  DTF_HOST_DEVICE float operator()(float x) const { return x > 0 ? x : x * alpha; }
};
struct LeakyReluGradOf {
  float alpha;
  explicit LeakyReluGradOf(const Operation& o) : alpha(static_cast<float>(o.number("alpha"))) {}
  DTF_HOST_DEVICE float operator()(float dy, float x) const { return x > 0 ? dy : dy * alpha; }
};
struct HuberOf {
  float delta;
  explicit HuberOf(const Operation& o) : delta(static_cast<float>(o.number("delta"))) {}
  DTF_HOST_DEVICE float operator()(float x) const {
    const float a = x < 0 ? -x : x;
    return a > delta ? delta * (a - 0.5f * delta) : 0.5f * x * x;
  }
};
struct HuberGradOf {
  float delta;
  explicit HuberGradOf(const Operation& o) : delta(static_cast<float>(o.number("delta"))) {}
  DTF_HOST_DEVICE float operator()(float dy, float x) const {
    return dy * clampTo(x, -delta, delta);
  }
};

constexpr float kRootHalf = 0.707106781f, kDensity = 0.398942280f;  // sqrt(1/2), 1/sqrt(2 pi)
constexpr float kGeluRoot = 0.797884561f, kGeluCube = 0.044715f;    // the first is sqrt(2 / pi)

struct GeluOf {
  bool approximate;
  explicit GeluOf(const Operation& o) : approximate(o.flag("approximate")) {}
  DTF_HOST_DEVICE float operator()(float x) const {
    if (approximate) return 0.5f * x * (1.0f + tanhf(kGeluRoot * (x + kGeluCube * x * x * x)));
    return 0.5f * x * (1.0f + erff(x * kRootHalf));
  }
};
struct GeluGradOf {
  bool approximate;
  explicit GeluGradOf(const Operation& o) : approximate(o.flag("approximate")) {}
  DTF_HOST_DEVICE float operator()(float dy, float x) const {
    if (approximate) {
      const float t = tanhf(kGeluRoot * (x + kGeluCube * x * x * x));
      const float slope = kGeluRoot * (1.0f + 3.0f * kGeluCube * x * x);
      return dy * (0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * slope);
    }
    const float distribution = 0.5f * (1.0f + erff(x * kRootHalf));
    return dy * (distribution + x * (kDensity * expf(-0.5f * x * x)));
  }
};

struct SigmoidCrossEntropyOf {
  DTF_HOST_DEVICE float operator()(float logit, float target) const {
    return (logit < 0 ? 0 : logit) - logit * target + log1pf(expf(logit < 0 ? logit : -logit));
  }
};

struct SigmoidCrossEntropyGradAt {
  const float* dy;
  const float* logits;
  const float* targets;
  float* dx;
  DTF_HOST_DEVICE void operator()(int64_t i) const {
    dx[i] = dy[i] * (sigmoidOf(logits[i]) - targets[i]);
  }
};

class SigmoidCrossEntropyGradKernel final : public Kernel {
 public:
  explicit SigmoidCrossEntropyGradKernel(const Operation& o) : n_(o.outputs[0].elements()) {}
  void launch(Device& device, const Arguments& a) override {
    forElements(device, n_, SigmoidCrossEntropyGradAt{a.in(0), a.in(1), a.in(2), a.out(0)});
  }
  bool canOverwrite(int, int) const override { return true; }

 private:
  const int64_t n_;
};

constexpr uint32_t kDropoutStream = 0x11000000;  // the seed's use in base/random_streams.h

// Draws as described in standard_nn_ops.cc.
struct DropoutAt {
  const float* x;
  const int32_t* key;  // seed and batch, 64 bits each, possibly aligned to only 4 bytes
  float* y;
  uint32_t threshold, layer;
  float scale;
  DTF_HOST_DEVICE void operator()(int64_t i) const {
    const auto block = static_cast<uint32_t>(i / 64 * 16 + i % 16);
    Philox numbers = {{block, static_cast<uint32_t>(key[2]), static_cast<uint32_t>(key[3]), layer}};
    numbers.draw(static_cast<uint32_t>(key[0]), static_cast<uint32_t>(key[1]));
    y[i] = numbers.c[i % 64 / 16] < threshold ? 0 : x[i] * scale;
  }
};

class DropoutKernel final : public Kernel {
 public:
  explicit DropoutKernel(const Operation& o) : n_(o.outputs[0].elements()) {
    const double rate = o.number("rate");
    at_.threshold = static_cast<uint32_t>(rate * 0x1p32);
    at_.scale = static_cast<float>(1 / (1 - rate));
    at_.layer = kDropoutStream | static_cast<uint32_t>(o.integer("layer"));
  }
  void launch(Device& device, const Arguments& a) override {
    DropoutAt at = at_;
    at.x = a.in(0), at.key = a.in<int32_t>(1), at.y = a.out(0);
    forElements(device, n_, at);
  }
  bool canOverwrite(int, int input) const override { return input == 0; }

 private:
  const int64_t n_;
  DropoutAt at_ = {};
};

}  // namespace

void addActivationKernels(KernelTable& table) {
  table["Relu"] = packedUnary<ReluOf>;
  table["ReluGrad"] = packedBinary<ReluGradOf>;
  table["Relu6"] = make<UnaryKernel<Relu6Of>>;
  table["Relu6Grad"] = make<BinaryKernel<Relu6GradOf>>;
  table["LeakyRelu"] = make<UnaryKernel<LeakyReluOf>>;
  table["LeakyReluGrad"] = make<BinaryKernel<LeakyReluGradOf>>;
  table["Sigmoid"] = make<UnaryKernel<SigmoidOf>>;
  table["SigmoidGrad"] = make<BinaryKernel<SigmoidGradOf>>;
  table["Tanh"] = make<UnaryKernel<TanhOf>>;
  table["TanhGrad"] = make<BinaryKernel<TanhGradOf>>;
  table["Elu"] = make<UnaryKernel<EluOf>>;
  table["EluGrad"] = make<BinaryKernel<EluGradOf>>;
  table["Gelu"] = make<UnaryKernel<GeluOf>>;
  table["GeluGrad"] = make<BinaryKernel<GeluGradOf>>;
  table["Silu"] = make<UnaryKernel<SiluOf>>;
  table["SiluGrad"] = make<BinaryKernel<SiluGradOf>>;
  table["Softplus"] = make<UnaryKernel<SoftplusOf>>;
  table["SoftplusGrad"] = make<BinaryKernel<SoftplusGradOf>>;
  table["Abs"] = make<UnaryKernel<AbsOf>>;
  table["AbsGrad"] = make<BinaryKernel<AbsGradOf>>;
  table["Huber"] = make<UnaryKernel<HuberOf>>;
  table["HuberGrad"] = make<BinaryKernel<HuberGradOf>>;
  table["SigmoidCrossEntropyWithLogits"] = make<BinaryKernel<SigmoidCrossEntropyOf>>;
  table["SigmoidCrossEntropyGrad"] = make<SigmoidCrossEntropyGradKernel>;
  table["Dropout"] = make<DropoutKernel>;
}

}  // namespace dtf::gpu
