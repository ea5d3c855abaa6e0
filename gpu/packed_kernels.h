#pragma once

// Elementwise kernels that read and write 16 bytes at a time, for float32 and bfloat16: they
// compute in float32.

#include <algorithm>
#include <memory>

#include "gpu/element_kernels.h"
#include "gpu/pack.h"

namespace dtf::gpu {

// y = f(x) by packs of N; the last one may be shorter.
template <class F, class X, class Y, int N>
struct PackedUnaryAt {
  F f;
  const X* x;
  Y* y;
  int64_t n;
  DTF_HOST_DEVICE void operator()(int64_t pack) const {
    if ((pack + 1) * N <= n) {
      const Pack<X, N> from = load<N>(x, pack);
      Pack<Y, N> to;
      for (int i = 0; i < N; ++i) to.at[i] = f(from.at[i]);
      return store(y, pack, to);
    }
    for (int64_t i = pack * N; i < n; ++i) y[i] = f(x[i]);
  }
};
template <class F, class T, int N>
struct PackedBinaryAt {
  F f;
  const T* a;
  const T* b;
  T* y;
  int64_t n;
  DTF_HOST_DEVICE void operator()(int64_t pack) const {
    if ((pack + 1) * N <= n) {
      const Pack<T, N> of_a = load<N>(a, pack), of_b = load<N>(b, pack);
      Pack<T, N> to;
      for (int i = 0; i < N; ++i) to.at[i] = f(of_a.at[i], of_b.at[i]);
      return store(y, pack, to);
    }
    for (int64_t i = pack * N; i < n; ++i) y[i] = f(a[i], b[i]);
  }
};

inline int64_t packsOf(int64_t n, int64_t each) {
  return (n + each - 1) / each;
}

// Owns, threads, errors: as Kernel.
template <class F, class X, class Y = X>
class PackedUnary final : public Kernel {
 public:
  explicit PackedUnary(const Operation& o) : f_(functorOf<F>(o)), n_(o.outputs[0].elements()) {}
  void launch(Device& device, const Arguments& a) override {
    constexpr int kPack = std::max(kPackOf<X>, kPackOf<Y>);
    forElements(device, packsOf(n_, kPack),
                PackedUnaryAt<F, X, Y, kPack>{f_, a.in<X>(0), a.out<Y>(0), n_});
  }
  bool canOverwrite(int, int) const override { return sizeof(X) == sizeof(Y); }

 private:
  const F f_;
  const int64_t n_;
};

// y = f(a, b), all of one size.
template <class F, class T>
class PackedBinary final : public Kernel {
 public:
  explicit PackedBinary(const Operation& o) : f_(functorOf<F>(o)), n_(o.outputs[0].elements()) {}
  void launch(Device& device, const Arguments& a) override {
    constexpr int kPack = kPackOf<T>;
    forElements(device, packsOf(n_, kPack),
                PackedBinaryAt<F, T, kPack>{f_, a.in<T>(0), a.in<T>(1), a.out<T>(0), n_});
  }
  bool canOverwrite(int, int) const override { return true; }

 private:
  const F f_;
  const int64_t n_;
};

// KernelFactories for the type of the first input.
template <class F>
std::unique_ptr<Kernel> packedUnary(const Operation& o) {
  if (o.inputs[0].type == Type::kBFloat16) return std::make_unique<PackedUnary<F, BFloat16>>(o);
  return std::make_unique<PackedUnary<F, float>>(o);
}
template <class F>
std::unique_ptr<Kernel> packedBinary(const Operation& o) {
  if (o.inputs[0].type == Type::kBFloat16) return std::make_unique<PackedBinary<F, BFloat16>>(o);
  return std::make_unique<PackedBinary<F, float>>(o);
}

}  // namespace dtf::gpu
