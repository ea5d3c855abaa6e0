// Normalisation over the rows of [rows, channels]; the semantics are in
// common/graph/standard_norm_ops.cc, of fused operations in common/runtime/fusion.h. x, y and their
// gradients are float32 or bfloat16, everything else is float32.

#include <cmath>

#include "gpu/channel_kernels.h"
#include "gpu/element_kernels.h"

namespace dtf::gpu {
namespace {

// Moments about the first row's value, which is near the others: one pass over x without the
// cancellation of plain sums of squares. T. F. Chan, G. H. Golub and R. J. LeVeque, "Algorithms for
// computing the sample variance" (1983).
template <class T, int N>
struct MomentTerms {
  const T* x;
  struct Of {
    const T* x;
    Pack<float, N> shift;
    template <class Sums>
    DTF_HOST_DEVICE void operator()(int64_t at, Sums& sums) const {
      const Pack<T, N> from = load<N>(x, at);
      for (int i = 0; i < N; ++i) {
        const float d = from.at[i] - shift.at[i];
        sums[0].at[i] += d;
        sums[1].at[i] += d * d;
      }
    }
  };
  DTF_HOST_DEVICE Of of(int64_t pack) const {
    Of made = {x, {}};
    const Pack<T, N> first = load<N>(x, pack);
    for (int i = 0; i < N; ++i) made.shift.at[i] = first.at[i];
    return made;
  }
};
template <class T>
struct StoreMoments {
  const T* x;
  float* mean;
  float* variance;
  float* inverse;
  double rows, epsilon;
  DTF_HOST_DEVICE void operator()(int64_t c, const double* totals) const {
    const double from_shift = totals[0] / rows;
    const double squares = totals[1] - totals[0] * from_shift, all = squares > 0 ? squares : 0;
    // A NaN must not become 0.
    const double kept = squares == squares ? all : squares;
    mean[c] = static_cast<float>(static_cast<double>(static_cast<float>(x[c])) + from_shift);
    variance[c] = static_cast<float>(kept / (rows > 1 ? rows - 1 : 1));
    inverse[c] = static_cast<float>(1 / sqrt(kept / rows + epsilon));
  }
};

// y = (x - mean) * (inverse * scale) + offset [+ residual]; with `relu` its positive part.
template <class T, int N>
struct NormaliseRows {
  const T* x;
  const float* scale;
  const float* offset;
  const float* mean;
  const float* inverse;
  const T* residual;  // may be null
  bool relu;
  T* y;
  struct Of {
    NormaliseRows all;
    Pack<float, N> centre, factor, shift;
    DTF_HOST_DEVICE void operator()(int64_t at) const {
      const Pack<T, N> from = load<N>(all.x, at);
      Pack<T, N> more = {}, to;
      if (all.residual != nullptr) more = load<N>(all.residual, at);
      for (int i = 0; i < N; ++i) {
        const float made = (from.at[i] - centre.at[i]) * factor.at[i] + shift.at[i] + more.at[i];
        to.at[i] = all.relu && made < 0 ? 0.0f : made;
      }
      store(all.y, at, to);
    }
  };
  DTF_HOST_DEVICE Of of(int64_t pack) const {
    Of made = {*this, load<N>(mean, pack), load<N>(inverse, pack), load<N>(offset, pack)};
    const Pack<float, N> by = load<N>(scale, pack);
    for (int i = 0; i < N; ++i) made.factor.at[i] *= by.at[i];
    return made;
  }
};

// Inputs x, scale, offset and optionally a residual; outputs y, mean, variance, inverse.
template <class T, int N>
class BatchNormKernel final : public Kernel {
 public:
  BatchNormKernel(const Operation& o, bool relu)
      : packs_(o.inputs[0].rows(), o.inputs[0].lastDim()),
        epsilon_(o.number("epsilon")),
        relu_(relu),
        residual_(o.inputs.size() > 3) {}
  void launch(Device& device, const Arguments& a) override {
    const auto rows = static_cast<double>(packs_.rows);
    const T* const x = a.in<T>(0);
    sumChannels<2>(device, packs_, reinterpret_cast<float*>(a.workspace), MomentTerms<T, N>{x},
                   StoreMoments<T>{x, a.out(1), a.out(2), a.out(3), rows, epsilon_});
    forChannels(device, packs_,
                NormaliseRows<T, N>{x, a.in(1), a.in(2), a.out(1), a.out(3),
                                    residual_ ? a.in<T>(3) : nullptr, relu_, a.out<T>(0)});
  }
  size_t workspaceBytes() const override { return channelSumBytes(packs_, 2); }
  bool canOverwrite(int output, int input) const override {
    return output == 0 && (input == 0 || input == 3);
  }

 private:
  const ChannelPacks<N> packs_;
  const double epsilon_;
  const bool relu_, residual_;
};

// The channel statistics and parameters of a normalisation.
struct Statistics {
  const float* scale;
  const float* offset;  // null if not needed
  const float* mean;
  const float* inverse;
};

// The gradient of y where the relu behind it was open: where its y is above 0, or without y, where
// the value recomputed from x is.
template <class T, int N>
struct Gate {
  const T* dy;
  const T* more;  // second term of dy; may be null
  const T* y;     // may be null
  bool asks_x;    // recompute from x instead of reading y
  Statistics norm;
  struct Of {
    Gate all;
    Pack<float, N> centre, factor, shift;
    DTF_HOST_DEVICE Pack<float, N> through(int64_t at, const Pack<T, N>& x) const {
      Pack<float, N> gradient;
      const Pack<T, N> first = load<N>(all.dy, at);
      for (int i = 0; i < N; ++i) gradient.at[i] = first.at[i];
      if (all.more != nullptr) {
        const Pack<T, N> second = load<N>(all.more, at);
        for (int i = 0; i < N; ++i) gradient.at[i] += second.at[i];
      }
      if (all.y != nullptr) {
        const Pack<T, N> made = load<N>(all.y, at);
        for (int i = 0; i < N; ++i)
          if (made.at[i] <= 0.0f) gradient.at[i] = 0;
      } else if (all.asks_x) {
        for (int i = 0; i < N; ++i)
          if ((x.at[i] - centre.at[i]) * factor.at[i] + shift.at[i] <= 0) gradient.at[i] = 0;
      }
      return gradient;
    }
  };
  DTF_HOST_DEVICE Of of(int64_t pack) const {
    Of made = {*this, load<N>(norm.mean, pack), load<N>(norm.inverse, pack), {}};
    const Pack<float, N> by = load<N>(norm.scale, pack);
    for (int i = 0; i < N; ++i) made.factor.at[i] *= by.at[i];
    if (asks_x) made.shift = load<N>(norm.offset, pack);
    return made;
  }
};

template <class T, int N>
DTF_HOST_DEVICE Pack<T, N> rounded(const Pack<float, N>& values) {
  Pack<T, N> made;
  for (int i = 0; i < N; ++i) made.at[i] = values.at[i];
  return made;
}

// Sums of the gradient, and of its product with x - mean. `passed`, unless null, receives the
// masked gradient.
template <class T, int N>
struct GradientTerms {
  Gate<T, N> gate;
  const T* x;
  T* passed;
  struct Of {
    typename Gate<T, N>::Of gate;
    const T* x;
    T* passed;
    template <class Sums>
    DTF_HOST_DEVICE void operator()(int64_t at, Sums& sums) const {
      const Pack<T, N> from = load<N>(x, at);
      const Pack<float, N> gradient = gate.through(at, from);
      for (int i = 0; i < N; ++i) {
        sums[0].at[i] += gradient.at[i];
        sums[1].at[i] += gradient.at[i] * (from.at[i] - gate.centre.at[i]);
      }
      if (passed != nullptr) store(passed, at, rounded<T>(gradient));
    }
  };
  DTF_HOST_DEVICE Of of(int64_t pack) const { return {gate.of(pack), x, passed}; }
};
struct StoreGradients {
  const float* inverse;
  float* dscale;
  float* doffset;
  DTF_HOST_DEVICE void operator()(int64_t c, const double* totals) const {
    doffset[c] = static_cast<float>(totals[0]);
    dscale[c] = static_cast<float>(totals[1] * static_cast<double>(inverse[c]));
  }
};
// dx = inverse * scale * (dy - mean(dy) - h * mean(dy * h)), where h = (x - mean) * inverse.
template <class T, int N>
struct GradientRows {
  Gate<T, N> gate;
  const T* x;
  const float* dscale;
  const float* doffset;
  float rows;
  T* dx;
  struct Of {
    typename Gate<T, N>::Of gate;
    const T* x;
    T* dx;
    Pack<float, N> plain, along;
    DTF_HOST_DEVICE void operator()(int64_t at) const {
      const Pack<T, N> from = load<N>(x, at);
      Pack<float, N> to = gate.through(at, from);
      for (int i = 0; i < N; ++i)
        to.at[i] = (to.at[i] - plain.at[i] - (from.at[i] - gate.centre.at[i]) * along.at[i]) *
                   gate.factor.at[i];
      store(dx, at, rounded<T>(to));
    }
  };
  DTF_HOST_DEVICE Of of(int64_t pack) const {
    Of made = {gate.of(pack), x, dx, load<N>(doffset, pack), load<N>(dscale, pack)};
    const Pack<float, N> inverse = load<N>(gate.norm.inverse, pack);
    for (int i = 0; i < N; ++i) {
      made.plain.at[i] /= rows;
      made.along.at[i] *= inverse.at[i] / rows;
    }
    return made;
  }
};

// The places of the inputs of FusedBatchNormGrad and of _FusedBatchNormReluGrad
// (common/runtime/fusion.h).
struct GradientInputs {
  GradientInputs(const Operation& o, bool relu) {
    if (!relu) return;
    scale = 0, mean = 1, inverse = 2, offset = 3, x = 4;
    asks_x = o.flag("mask_from_x");
    y = asks_x ? -1 : 5;
    dy = asks_x ? 5 : 6;
    more = o.inputs.size() > static_cast<size_t>(dy) + 1 ? dy + 1 : -1;
  }
  // -1: absent
  int dy = 0, more = -1, y = -1, x = 1, scale = 2, mean = 3, inverse = 4, offset = -1;
  bool asks_x = false;
};

// Outputs dx, dscale, doffset, and optionally the masked gradient.
template <class T, int N>
class BatchNormGradKernel final : public Kernel {
 public:
  BatchNormGradKernel(const Operation& o, bool relu)
      : in_(o, relu),
        packs_(o.outputs[0].rows(), o.outputs[0].lastDim()),
        passes_(o.outputs.size() > 3) {}
  void launch(Device& device, const Arguments& a) override {
    const T* const x = a.in<T>(static_cast<size_t>(in_.x));
    const Statistics norm = {find<float>(a, in_.scale), find<float>(a, in_.offset),
                             find<float>(a, in_.mean), find<float>(a, in_.inverse)};
    Gate<T, N> gate = {find<T>(a, in_.dy), find<T>(a, in_.more), find<T>(a, in_.y), in_.asks_x,
                       norm};
    // Reads the masked gradient again, instead of everything it was computed from.
    T* const passed = passes_ ? a.out<T>(3) : in_.more >= 0 ? a.out<T>(0) : nullptr;
    sumChannels<2>(device, packs_, reinterpret_cast<float*>(a.workspace),
                   GradientTerms<T, N>{gate, x, passed},
                   StoreGradients{norm.inverse, a.out(1), a.out(2)});
    if (passed != nullptr) gate = {passed, nullptr, nullptr, false, norm};
    forChannels(device, packs_,
                GradientRows<T, N>{gate, x, a.out(1), a.out(2), static_cast<float>(packs_.rows),
                                   a.out<T>(0)});
  }
  size_t workspaceBytes() const override { return channelSumBytes(packs_, 2); }
  // x is read after the sums are complete, when the first output may hold the masked gradient.
  bool canOverwrite(int output, int input) const override {
    if (output == 3) return input == in_.dy || input == in_.more;
    return output == 0 && (input == in_.dy || (in_.more >= 0 && input == in_.more) ||
                           (in_.more < 0 && input == in_.x));
  }

 private:
  template <class U>
  static const U* find(const Arguments& a, int input) {
    return input < 0 ? nullptr : a.in<U>(static_cast<size_t>(input));
  }

  const GradientInputs in_;
  const ChannelPacks<N> packs_;
  const bool passes_;
};

struct InferenceAt {
  const float* x;
  const float* scale;
  const float* offset;
  const float* mean;
  const float* variance;
  float* y;
  int64_t channels;
  float epsilon;
  DTF_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t c = remainderOf(i, channels);
    y[i] = (x[i] - mean[c]) * (1.0f / sqrtf(variance[c] + epsilon) * scale[c]) + offset[c];
  }
};
class BatchNormInferenceKernel final : public Kernel {
 public:
  explicit BatchNormInferenceKernel(const Operation& o)
      : n_(o.inputs[0].elements()),
        channels_(o.inputs[0].lastDim()),
        epsilon_(static_cast<float>(o.number("epsilon"))) {}
  void launch(Device& device, const Arguments& a) override {
    forElements(
        device, n_,
        InferenceAt{a.in(0), a.in(1), a.in(2), a.in(3), a.in(4), a.out(0), channels_, epsilon_});
  }
  bool canOverwrite(int output, int input) const override { return output == 0 && input == 0; }

 private:
  const int64_t n_, channels_;
  const float epsilon_;
};

template <template <class, int> class K, bool kRelu>
std::unique_ptr<Kernel> batchNorm(const Operation& o) {
  return byChannels<K>(o, o.outputs[0], kRelu);
}

}  // namespace

void addBatchNormKernels(KernelTable& table) {
  table["FusedBatchNorm"] = batchNorm<BatchNormKernel, false>;
  table["_FusedBatchNormRelu"] = batchNorm<BatchNormKernel, true>;
  table["FusedBatchNormGrad"] = batchNorm<BatchNormGradKernel, false>;
  table["_FusedBatchNormReluGrad"] = batchNorm<BatchNormGradKernel, true>;
  table["FusedBatchNormInference"] = make<BatchNormInferenceKernel>;
}

}  // namespace dtf::gpu
