#pragma once

// Elementwise kernels, made from functors.

#include <memory>
#include <type_traits>

#include "gpu/kernel.h"
#include "gpu/launch.h"
#include "gpu/strided.h"

namespace dtf::gpu {

// Makes a functor from the operation's attributes, or from nothing.
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
template <class F, class X, class Y>
struct RepeatingAt {
  F f;
  Strided<2> strided;
  const X* a;
  const X* b;
  Y* y;
  DTF_HOST_DEVICE void operator()(int64_t i) const {
    const Strided<2>::Places places = strided.at(i);
    y[i] = f(a[places.of[0]], b[places.of[1]]);
  }
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
  explicit BinaryKernel(const Operation& o) : f_(functorOf<F>(o)), n_(o.outputs[0].elements()) {}
  void launch(Device& device, const Arguments& a) override {
    forElements(device, n_, BinaryAt<F, X, Y>{f_, a.in<X>(0), a.in<X>(1), a.out<Y>(0)});
  }
  bool canOverwrite(int, int) const override { return sizeof(X) == sizeof(Y); }

 private:
  const F f_;
  const int64_t n_;
};

// y = F(a, b), where a and b have y's size, or are repeated.
template <class F, class X = float, class Y = float>
class BroadcastKernel final : public Kernel {
 public:
  explicit BroadcastKernel(const Operation& o)
      : f_(functorOf<F>(o)),
        n_(o.outputs[0].elements()),
        repeats_(o.inputs[0].elements() != n_ || o.inputs[1].elements() != n_) {
    const std::vector<int64_t>& dims = o.outputs[0].dims;
    if (repeats_)
      strided_ = stridedOf<2>(
          o, dims, {repeatedStrides(o.inputs[0], dims), repeatedStrides(o.inputs[1], dims)});
  }
  void launch(Device& device, const Arguments& a) override {
    const X *const x = a.in<X>(0), *const other = a.in<X>(1);
    if (repeats_) {
      forElements(device, n_, RepeatingAt<F, X, Y>{f_, strided_, x, other, a.out<Y>(0)});
    } else {
      forElements(device, n_, BinaryAt<F, X, Y>{f_, x, other, a.out<Y>(0)});
    }
  }
  // A repeated input is smaller than y, so it is never queried.
  bool canOverwrite(int, int) const override { return sizeof(X) == sizeof(Y); }

 private:
  const F f_;
  const int64_t n_;
  const bool repeats_;
  Strided<2> strided_;  // if repeated
};

// A KernelFactory.
template <class K>
std::unique_ptr<Kernel> make(const Operation& operation) {
  return std::make_unique<K>(operation);
}

}  // namespace dtf::gpu
