// Elementwise arithmetic; the semantics are in common/graph/standard_math_ops.cc.

#include <cmath>

#include "gpu/packed_kernels.h"

namespace dtf::gpu {
namespace {

struct AddOf {
  DTF_HOST_DEVICE float operator()(float a, float b) const { return a + b; }
};
struct SubOf {
  DTF_HOST_DEVICE float operator()(float a, float b) const { return a - b; }
};
struct MulOf {
  DTF_HOST_DEVICE float operator()(float a, float b) const { return a * b; }
};
struct DivOf {
  DTF_HOST_DEVICE float operator()(float a, float b) const { return a / b; }
};
struct MaximumOf {
  DTF_HOST_DEVICE float operator()(float a, float b) const { return a < b || b != b ? b : a; }
};
struct MinimumOf {
  DTF_HOST_DEVICE float operator()(float a, float b) const { return b < a || b != b ? b : a; }
};
struct ExpOf {
  DTF_HOST_DEVICE float operator()(float x) const { return expf(x); }
};
struct LogOf {
  DTF_HOST_DEVICE float operator()(float x) const { return logf(x); }
};
struct SqrtOf {
  DTF_HOST_DEVICE float operator()(float x) const { return sqrtf(x); }
};
struct RsqrtOf {
  DTF_HOST_DEVICE float operator()(float x) const { return 1.0f / sqrtf(x); }
};
struct SquaredDifferenceOf {
  DTF_HOST_DEVICE float operator()(float a, float b) const { return (a - b) * (a - b); }
};
// In double precision, since powf() is off by up to 4 units in the last place.
struct PowOf {
  DTF_HOST_DEVICE float operator()(float a, float b) const {
    return static_cast<float>(pow(static_cast<double>(a), static_cast<double>(b)));
  }
};
struct ScaleOf {
  float factor;
  explicit ScaleOf(const Operation& o) : factor(static_cast<float>(o.number("factor", 1))) {}
  DTF_HOST_DEVICE float operator()(float x) const { return x * factor; }
};
struct SelectAt {
  const uint8_t* condition;
  const float* a;
  const float* b;
  float* y;
  DTF_HOST_DEVICE void operator()(int64_t i) const { y[i] = condition[i] != 0 ? a[i] : b[i]; }
};
struct NormaliseOf {
  float scale;
  explicit NormaliseOf(const Operation& o) : scale(static_cast<float>(o.number("scale", 1))) {}
  DTF_HOST_DEVICE float operator()(uint8_t x) const { return static_cast<float>(x) * scale; }
};

struct CopyAt {
  const uint8_t* from;
  uint8_t* to;
  DTF_HOST_DEVICE void operator()(int64_t i) const { to[i] = from[i]; }
};
struct CopyWordAt {
  const uint32_t* from;
  uint32_t* to;
  DTF_HOST_DEVICE void operator()(int64_t i) const { to[i] = from[i]; }
};

// Copies input `Input`, of any type.
template <size_t Input>
class CopyKernel final : public Kernel {
 public:
  explicit CopyKernel(const Operation& o) : bytes_(o.outputs[0].bytes()) {}
  void launch(Device& device, const Arguments& a) override {
    if (a.inputs[Input] == a.outputs[0]) return;
    if (bytes_ % 4 == 0) {
      forElements(device, bytes_ / 4, CopyWordAt{a.in<uint32_t>(Input), a.out<uint32_t>(0)});
    } else {
      forElements(device, bytes_, CopyAt{a.in<uint8_t>(Input), a.out<uint8_t>(0)});
    }
  }
  bool canOverwrite(int, int) const override { return true; }

 private:
  const int64_t bytes_;
};

// Adds some terms at a time, from left to right; the first time it ignores the old output.
template <class T, int N>
struct SumAt {
  static constexpr int kTermsMax = 8;
  const T* terms[kTermsMax];
  int count;
  bool more;
  T* sum;
  int64_t n;
  DTF_HOST_DEVICE void operator()(int64_t pack) const {
    if ((pack + 1) * N > n) {
      for (int64_t i = pack * N; i < n; ++i) sum[i] = added<1>(i).at[0];
      return;
    }
    const Pack<float, N> total = added<N>(pack);
    Pack<T, N> to;
    for (int i = 0; i < N; ++i) to.at[i] = total.at[i];
    store(sum, pack, to);
  }

 private:
  template <int M>
  DTF_HOST_DEVICE Pack<float, M> added(int64_t pack) const {
    Pack<float, M> total = {};
    const Pack<T, M> first = load<M>(more ? sum : terms[0], pack);
    for (int i = 0; i < M; ++i) total.at[i] = first.at[i];
    for (int t = more ? 0 : 1; t < count; ++t) {
      const Pack<T, M> term = load<M>(terms[t], pack);
      for (int i = 0; i < M; ++i) total.at[i] += term.at[i];
    }
    return total;
  }
};

template <class T>
class AddNKernel final : public Kernel {
 public:
  explicit AddNKernel(const Operation& o) : n_(o.outputs[0].elements()), terms_(o.inputs.size()) {}
  void launch(Device& device, const Arguments& a) override {
    for (size_t first = 0; first < terms_; first += Sum::kTermsMax) {
      Sum at = {};
      at.more = first > 0;
      at.sum = a.out<T>(0);
      at.n = n_;
      for (size_t t = first; t < terms_ && at.count < Sum::kTermsMax; ++t)
        at.terms[at.count++] = a.in<T>(t);
      forElements(device, packsOf(n_, kPackOf<T>), at);
    }
  }
  // Reads the ninth and later terms after it has written the output.
  bool canOverwrite(int, int input) const override { return input < Sum::kTermsMax; }

 private:
  using Sum = SumAt<T, kPackOf<T>>;
  const int64_t n_;
  const size_t terms_;
};
std::unique_ptr<Kernel> addN(const Operation& o) {
  if (o.inputs[0].type == Type::kBFloat16) return std::make_unique<AddNKernel<BFloat16>>(o);
  return std::make_unique<AddNKernel<float>>(o);
}

std::unique_ptr<Kernel> add(const Operation& o) {
  const int64_t n = o.outputs[0].elements();
  if (o.inputs[0].elements() != n || o.inputs[1].elements() != n)
    return make<BroadcastKernel<AddOf>>(o);
  return packedBinary<AddOf>(o);
}

std::unique_ptr<Kernel> normalise(const Operation& o) {
  if (o.outputs[0].type == Type::kBFloat16)
    return std::make_unique<PackedUnary<NormaliseOf, uint8_t, BFloat16>>(o);
  return std::make_unique<PackedUnary<NormaliseOf, uint8_t, float>>(o);
}

struct SameOf {
  DTF_HOST_DEVICE float operator()(float x) const { return x; }
};
// Converts between float32 and bfloat16.
std::unique_ptr<Kernel> castPrecision(const Operation& o) {
  if (o.outputs[0].type == Type::kBFloat16)
    return std::make_unique<PackedUnary<SameOf, float, BFloat16>>(o);
  return std::make_unique<PackedUnary<SameOf, BFloat16, float>>(o);
}

class SelectKernel final : public Kernel {
 public:
  explicit SelectKernel(const Operation& o) : n_(o.outputs[0].elements()) {}
  void launch(Device& device, const Arguments& a) override {
    forElements(device, n_, SelectAt{a.in<uint8_t>(0), a.in(1), a.in(2), a.out(0)});
  }
  bool canOverwrite(int, int input) const override { return input > 0; }

 private:
  const int64_t n_;
};

struct MeanGradAt {
  const float* dy;
  float* dx;
  float n;
  DTF_HOST_DEVICE void operator()(int64_t i) const { dx[i] = *dy / n; }
};

class MeanGradKernel final : public Kernel {
 public:
  explicit MeanGradKernel(const Operation& o) : n_(o.outputs[0].elements()) {}
  void launch(Device& device, const Arguments& a) override {
    forElements(device, n_, MeanGradAt{a.in(0), a.out(0), static_cast<float>(n_)});
  }

 private:
  const int64_t n_;
};

}  // namespace

void addElementKernels(KernelTable& table) {
  table["Identity"] = table["StopGradient"] = table["Reshape"] = make<CopyKernel<0>>;
  table["Assign"] = make<CopyKernel<1>>;
  table["Normalise"] = normalise;
  table["_CastPrecision"] = castPrecision;
  table["Scale"] = make<UnaryKernel<ScaleOf>>;
  table["Add"] = table["AssignAdd"] = add;
  table["Sub"] = make<BroadcastKernel<SubOf>>;
  table["AssignSub"] = make<BinaryKernel<SubOf>>;
  table["Mul"] = make<BroadcastKernel<MulOf>>;
  table["Div"] = make<BroadcastKernel<DivOf>>;
  table["Maximum"] = make<BroadcastKernel<MaximumOf>>;
  table["Minimum"] = make<BroadcastKernel<MinimumOf>>;
  table["Pow"] = make<BroadcastKernel<PowOf>>;
  table["Exp"] = make<UnaryKernel<ExpOf>>;
  table["Log"] = make<UnaryKernel<LogOf>>;
  table["Sqrt"] = make<UnaryKernel<SqrtOf>>;
  table["Rsqrt"] = make<UnaryKernel<RsqrtOf>>;
  table["SquaredDifference"] = make<BroadcastKernel<SquaredDifferenceOf>>;
  table["Select"] = make<SelectKernel>;
  table["AddN"] = addN;
  table["MeanGrad"] = make<MeanGradKernel>;
}

}  // namespace dtf::gpu
