// Arithmetic by row; the semantics are in common/graph/standard_math_ops.cc and standard_nn_ops.cc.

#include <cmath>

#include "gpu/channel_kernels.h"
#include "gpu/element_kernels.h"

namespace dtf::gpu {
namespace {

// x and y are float32 or bfloat16; a bias and its gradient are float32.
template <class T, int N>
struct BiasRows {
  const T* x;
  const float* bias;
  T* y;
  struct Of {
    const T* x;
    T* y;
    Pack<float, N> bias;
    DTF_HOST_DEVICE void operator()(int64_t at) const {
      const Pack<T, N> from = load<N>(x, at);
      Pack<T, N> to;
      for (int i = 0; i < N; ++i) to.at[i] = from.at[i] + bias.at[i];
      store(y, at, to);
    }
  };
  DTF_HOST_DEVICE Of of(int64_t pack) const { return {x, y, load<N>(bias, pack)}; }
};
template <class T, int N>
class BiasAddKernel final : public Kernel {
 public:
  explicit BiasAddKernel(const Operation& o)
      : packs_(o.outputs[0].rows(), o.outputs[0].lastDim()) {}
  void launch(Device& device, const Arguments& a) override {
    forChannels(device, packs_, BiasRows<T, N>{a.in<T>(0), a.in(1), a.out<T>(0)});
  }
  bool canOverwrite(int, int input) const override { return input == 0; }

 private:
  const ChannelPacks<N> packs_;
};

template <class T, int N>
struct ColumnTerms {
  const T* dy;
  struct Of {
    const T* dy;
    template <class Sums>
    DTF_HOST_DEVICE void operator()(int64_t at, Sums& sums) const {
      const Pack<T, N> from = load<N>(dy, at);
      for (int i = 0; i < N; ++i) sums[0].at[i] += from.at[i];
    }
  };
  DTF_HOST_DEVICE Of of(int64_t) const { return {dy}; }
};
struct StoreColumn {
  float* to;
  DTF_HOST_DEVICE void operator()(int64_t column, const double* totals) const {
    to[column] = static_cast<float>(totals[0]);
  }
};
template <class T, int N>
class BiasAddGradKernel final : public Kernel {
 public:
  explicit BiasAddGradKernel(const Operation& o)
      : packs_(o.inputs[0].rows(), o.inputs[0].lastDim()) {}
  void launch(Device& device, const Arguments& a) override {
    sumChannels<1>(device, packs_, reinterpret_cast<float*>(a.workspace),
                   ColumnTerms<T, N>{a.in<T>(0)}, StoreColumn{a.out(0)});
  }
  size_t workspaceBytes() const override { return channelSumBytes(packs_, 1); }

 private:
  const ChannelPacks<N> packs_;
};
struct MulRowsAt {
  const float* dy;
  const float* x;
  float* y;
  int64_t columns;
  DTF_HOST_DEVICE void operator()(int64_t i) const { y[i] = x[i] * dy[i / columns]; }
};
class MulRowsKernel final : public Kernel {
 public:
  explicit MulRowsKernel(const Operation& o)
      : n_(o.outputs[0].elements()), columns_(o.outputs[0].lastDim()) {}
  void launch(Device& device, const Arguments& a) override {
    forElements(device, n_, MulRowsAt{a.in(0), a.in(1), a.out(0), columns_});
  }
  bool canOverwrite(int, int input) const override { return input == 1; }

 private:
  const int64_t n_, columns_;
};

struct SoftmaxAt {
  const float* x;
  float* y;
  int64_t columns;
  template <class T>
  DTF_HOST_DEVICE void operator()(const T& team, int64_t row) const {
    const float* const from = x + row * columns;
    float* const to = y + row * columns;
    const float max = rowMax(team, from, columns);
    const float total = expRow(team, from, max, to, columns);
    for (int64_t i = team.rank(); i < columns; i += team.size()) to[i] /= total;
  }

  template <class T>
  static DTF_HOST_DEVICE float rowMax(const T& team, const float* x, int64_t n) {
    float max = x[0];
    for (int64_t i = team.rank(); i < n; i += team.size())
      max = x[i] > max || x[i] != x[i] ? x[i] : max;
    return team.max(max);
  }
  // y = exp(x - max); returns the sum of the row. x may be y: each thread has its own elements.
  template <class T>
  static DTF_HOST_DEVICE float expRow(const T& team, const float* x, float max, float* y,
                                      int64_t n) {
    float sum = 0;
    for (int64_t i = team.rank(); i < n; i += team.size()) {
      y[i] = expf(x[i] - max);
      sum += y[i];
    }
    return team.sum(sum);
  }
};
class SoftmaxKernel final : public Kernel {
 public:
  explicit SoftmaxKernel(const Operation& o)
      : rows_(o.outputs[0].rows()), columns_(o.outputs[0].lastDim()) {}
  void launch(Device& device, const Arguments& a) override {
    forTeams(device, rows_, columns_, SoftmaxAt{a.in(0), a.out(0), columns_});
  }
  bool canOverwrite(int, int) const override { return true; }

 private:
  const int64_t rows_, columns_;
};

struct SoftmaxGradAt {
  const float* dy;
  const float* y;
  float* dx;
  int64_t columns;
  template <class T>
  DTF_HOST_DEVICE void operator()(const T& team, int64_t row) const {
    const int64_t first = row * columns;
    float sum = 0;
    for (int64_t i = team.rank(); i < columns; i += team.size())
      sum += dy[first + i] * y[first + i];
    const float dot = team.sum(sum);
    for (int64_t i = team.rank(); i < columns; i += team.size())
      dx[first + i] = (dy[first + i] - dot) * y[first + i];
  }
};
class SoftmaxGradKernel final : public Kernel {
 public:
  explicit SoftmaxGradKernel(const Operation& o)
      : rows_(o.outputs[0].rows()), columns_(o.outputs[0].lastDim()) {}
  void launch(Device& device, const Arguments& a) override {
    forTeams(device, rows_, columns_, SoftmaxGradAt{a.in(0), a.in(1), a.out(0), columns_});
  }
  bool canOverwrite(int, int) const override { return true; }

 private:
  const int64_t rows_, columns_;
};

struct TargetsCrossEntropyAt {
  const float* logits;
  const float* targets;
  float* loss;
  float* backprop;
  int64_t columns;
  template <class T>
  DTF_HOST_DEVICE void operator()(const T& team, int64_t row) const {
    const float *const x = logits + row * columns, *const z = targets + row * columns;
    float* const to = backprop + row * columns;
    const float max = SoftmaxAt::rowMax(team, x, columns);
    float of_targets = 0, weight = 0;
    for (int64_t i = team.rank(); i < columns; i += team.size()) {
      of_targets += z[i] * (x[i] - max);
      weight += z[i];
    }
    const float all_targets = team.sum(of_targets), all_weight = team.sum(weight);
    const float total = SoftmaxAt::expRow(team, x, max, to, columns);
    if (team.rank() == 0) loss[row] = all_weight * logf(total) - all_targets;
    for (int64_t i = team.rank(); i < columns; i += team.size()) to[i] = to[i] / total - z[i];
  }
};
class TargetsCrossEntropyKernel final : public Kernel {
 public:
  explicit TargetsCrossEntropyKernel(const Operation& o)
      : rows_(o.inputs[0].rows()), columns_(o.inputs[0].lastDim()) {}
  void launch(Device& device, const Arguments& a) override {
    forTeams(device, rows_, columns_,
             TargetsCrossEntropyAt{a.in(0), a.in(1), a.out(0), a.out(1), columns_});
  }

 private:
  const int64_t rows_, columns_;
};

}  // namespace

void addRowKernels(KernelTable& table) {
  table["BiasAdd"] = byChannelsOfInput<BiasAddKernel>;
  table["BiasAddGrad"] = byChannelsOfInput<BiasAddGradKernel>;
  table["MulRows"] = make<MulRowsKernel>;
  table["Softmax"] = make<SoftmaxKernel>;
  table["SoftmaxGrad"] = make<SoftmaxGradKernel>;
  table["SoftmaxCrossEntropyWithLogits"] = make<TargetsCrossEntropyKernel>;
}

}  // namespace dtf::gpu
