#pragma once

// Kernels that compute each element from those at its place, made from functors.

#include <memory>
#include <type_traits>

#include "gpu/error.h"
#include "gpu/kernel.h"
#include "gpu/launch.h"

namespace dtf::gpu {

// A functor of the operation's attributes, or of nothing.
template <class F>
F functorOf(const Operation& operation) {
  if constexpr (std::is_constructible_v<F, const Operation&>) {
    return F(operation);
  } else {
    return F();
  }
}

template <class F, class X, class Y>
struct UnaryAt {
  F f;
  const X* x;
  Y* y;
  DTF_HOST_DEVICE void operator()(int64_t i) const { y[i] = f(x[i]); }
};
template <class F, class X, class Y>
struct BinaryAt {
  F f;
  const X* a;
  const X* b;
  Y* y;
  DTF_HOST_DEVICE void operator()(int64_t i) const { y[i] = f(a[i], b[i]); }
};

// y = F(x). Owns, threads, errors: as Kernel.
template <class F, class X = float, class Y = float>
class UnaryKernel final : public Kernel {
 public:
  explicit UnaryKernel(const Operation& o) : f_(functorOf<F>(o)), n_(o.outputs[0].elements()) {}
  void launch(Device& device, const Arguments& a) override {
    forElements(device, n_, UnaryAt<F, X, Y>{f_, a.in<X>(0), a.out<Y>(0)});
  }
  bool canOverwrite(int, int) const override { return sizeof(X) == sizeof(Y); }

 private:
  const F f_;
  const int64_t n_;
};

// y = F(a, b), all of one size.
template <class F, class X = float, class Y = float>
class BinaryKernel final : public Kernel {
 public:
  explicit BinaryKernel(const Operation& o) : f_(functorOf<F>(o)), n_(o.outputs[0].elements()) {
    if (o.inputs[0].elements() == n_ && o.inputs[1].elements() == n_) return;
    throw PluginError(
        DTF_PLUGIN_BAD_CONFIG,
        "Node '" + o.name + "': " + o.op +
            " of operands that are repeated has no kernel for GPUs. Place it on a CPU.");
  }
  void launch(Device& device, const Arguments& a) override {
    forElements(device, n_, BinaryAt<F, X, Y>{f_, a.in<X>(0), a.in<X>(1), a.out<Y>(0)});
  }
  bool canOverwrite(int, int) const override { return sizeof(X) == sizeof(Y); }

 private:
  const F f_;
  const int64_t n_;
};

// As a KernelFactory.
template <class K>
std::unique_ptr<Kernel> make(const Operation& operation) {
  return std::make_unique<K>(operation);
}

}  // namespace dtf::gpu
