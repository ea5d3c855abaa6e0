// Normalisation over the rows of [rows, channels]; the semantics are in common/graph/standard_norm_ops.cc, those of what is
// joined with it in common/runtime/fusion.h. x, y and their gradients are float32 or bfloat16, all else is float32.

#include <cmath>

#include "gpu/channel_kernels.h"
#include "gpu/element_kernels.h"

namespace dtf::gpu {
namespace {

// Moments about the first row's value, which lies near the others: one pass over x without the cancellation that plain
// sums of squares have. T. F. Chan, G. H. Golub and R. J. LeVeque, "Algorithms for computing the sample variance" (1983).
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

// y = (x - mean) * (inverse * scale) + offset [+ residual], then the positive part of it where `relu` says so.
template <class T, int N>
struct NormaliseRows {
  const T* x;
  const float* scale;
  const float* offset;
  const float* mean;
  const float* inverse;
  const T* residual;  // or null
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

// Inputs x, scale, offset and perhaps a residual; outputs y, mean, variance, inverse.
template <class T, int N>
class BatchNormKernel final : public Kernel {
 public:
  BatchNormKernel(const Operation& o, bool relu)
      : shares_(o.inputs[0].rows(), o.inputs[0].lastDim()),
        epsilon_(o.number("epsilon")),
        relu_(relu),
        residual_(o.inputs.size() > 3) {}
  void launch(Device& device, const Arguments& a) override {
    const auto rows = static_cast<double>(shares_.rows);
    const T* const x = a.in<T>(0);
    sumChannels<2>(device, shares_, reinterpret_cast<float*>(a.workspace), MomentTerms<T, N>{x},
                   StoreMoments<T>{x, a.out(1), a.out(2), a.out(3), rows, epsilon_});
    forChannels(device, shares_,
                NormaliseRows<T, N>{x, a.in(1), a.in(2), a.out(1), a.out(3),
                                    residual_ ? a.in<T>(3) : nullptr, relu_, a.out<T>(0)});
  }
  size_t workspaceBytes() const override { return shares_.sumBytes(2); }
  bool canOverwrite(int output, int input) const override {
    return output == 0 && (input == 0 || input == 3);
  }

 private:
  const ChannelShares<N> shares_;
  const double epsilon_;
  const bool relu_, residual_;
};

// The gradient of y where relu(y) lets it through; `y` is null where there is none.
template <class T, int N>
struct GradientTerms {
  const T* dy;
  const T* y;
  const T* x;
  const float* mean;
  struct Of {
    GradientTerms all;
    Pack<float, N> centre;
    template <class Sums>
    DTF_HOST_DEVICE void operator()(int64_t at, Sums& sums) const {
      const Pack<T, N> from = load<N>(all.x, at), gradient = through(all.dy, all.y, at);
      for (int i = 0; i < N; ++i) {
        const float d = gradient.at[i];
        sums[0].at[i] += d;
        sums[1].at[i] += d * (from.at[i] - centre.at[i]);
      }
    }
  };
  DTF_HOST_DEVICE Of of(int64_t pack) const { return {*this, load<N>(mean, pack)}; }

  static DTF_HOST_DEVICE Pack<T, N> through(const T* dy, const T* y, int64_t at) {
    Pack<T, N> gradient = load<N>(dy, at);
    if (y == nullptr) return gradient;
    const Pack<T, N> open = load<N>(y, at);
    for (int i = 0; i < N; ++i)
      if (open.at[i] <= 0.0f) gradient.at[i] = T(0.0f);
    return gradient;
  }
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
  const T* dy;
  const T* y;
  const T* x;
  const float* scale;
  const float* mean;
  const float* inverse;
  const float* dscale;
  const float* doffset;
  float rows;
  T* dx;
  T* passed;  // what goes through relu, for others that read it; or null
  struct Of {
    GradientRows all;
    Pack<float, N> centre, inverse, factor, plain, along;
    DTF_HOST_DEVICE void operator()(int64_t at) const {
      const Pack<T, N> from = load<N>(all.x, at);
      const Pack<T, N> gradient = GradientTerms<T, N>::through(all.dy, all.y, at);
      Pack<T, N> to;
      for (int i = 0; i < N; ++i) {
        const float h = (from.at[i] - centre.at[i]) * inverse.at[i];
        to.at[i] = (gradient.at[i] - plain.at[i] - h * along.at[i]) * factor.at[i];
      }
      store(all.dx, at, to);
      if (all.passed != nullptr) store(all.passed, at, gradient);
    }
  };
  DTF_HOST_DEVICE Of of(int64_t pack) const {
    Of made = {*this, load<N>(mean, pack), load<N>(inverse, pack), load<N>(scale, pack),
               load<N>(doffset, pack), load<N>(dscale, pack)};
    for (int i = 0; i < N; ++i) {
      made.factor.at[i] *= made.inverse.at[i];
      made.plain.at[i] /= rows;
      made.along.at[i] /= rows;
    }
    return made;
  }
};

// Inputs dy, [y of the relu,] x, scale, mean, inverse; outputs dx, dscale, doffset, and perhaps what goes through the relu.
template <class T, int N>
class BatchNormGradKernel final : public Kernel {
 public:
  BatchNormGradKernel(const Operation& o, bool relu)
      : shares_(o.inputs[0].rows(), o.inputs[0].lastDim()),
        x_(relu ? 2 : 1),
        relu_(relu),
        passes_(o.outputs.size() > 3) {}
  void launch(Device& device, const Arguments& a) override {
    const T *const dy = a.in<T>(0), *const x = a.in<T>(x_), *const y = relu_ ? a.in<T>(1) : nullptr;
    const float *const scale = a.in(x_ + 1), *const mean = a.in(x_ + 2), *const inverse = a.in(x_ + 3);
    sumChannels<2>(device, shares_, reinterpret_cast<float*>(a.workspace),
                   GradientTerms<T, N>{dy, y, x, mean}, StoreGradients{inverse, a.out(1), a.out(2)});
    forChannels(device, shares_,
                GradientRows<T, N>{dy, y, x, scale, mean, inverse, a.out(1), a.out(2),
                                   static_cast<float>(shares_.rows), a.out<T>(0),
                                   passes_ ? a.out<T>(3) : nullptr});
  }
  size_t workspaceBytes() const override { return shares_.sumBytes(2); }
  bool canOverwrite(int output, int input) const override {
    return output == 0 && (input == 0 || input == static_cast<int>(x_));
  }

 private:
  const ChannelShares<N> shares_;
  const size_t x_;
  const bool relu_, passes_;
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
    forElements(device, n_,
                InferenceAt{a.in(0), a.in(1), a.in(2), a.in(3), a.in(4), a.out(0), channels_, epsilon_});
  }
  bool canOverwrite(int output, int input) const override { return output == 0 && input == 0; }

 private:
  const int64_t n_, channels_;
  const float epsilon_;
};

template <template <class, int> class K, bool kRelu>
std::unique_ptr<Kernel> batchNorm(const Operation& o) {
  return byChannels<K>(o, kRelu);
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
