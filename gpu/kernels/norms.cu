// Normalisation; the semantics are in common/graph/standard_norm_ops.cc.

#include <cmath>

#include "gpu/column_sums.h"
#include "gpu/element_kernels.h"

namespace dtf::gpu {
namespace {

// x is [rows, channels].
struct Sizes {
  explicit Sizes(const TensorSpec& x) : rows(x.rows()), channels(x.lastDim()) {}
  int64_t elements() const { return rows * channels; }
  int64_t rows, channels;
};

struct ValueTerm {
  const float* x;
  int64_t channels;
  DTF_HOST_DEVICE void operator()(int64_t row, int64_t c, float* sums) const {
    sums[0] += x[row * channels + c];
  }
};
struct StoreMean {
  float* mean;
  double rows;
  DTF_HOST_DEVICE void operator()(int64_t c, const double* totals) const {
    mean[c] = static_cast<float>(totals[0] / rows);
  }
};
struct SquareTerm {
  const float* x;
  const float* mean;
  int64_t channels;
  DTF_HOST_DEVICE void operator()(int64_t row, int64_t c, float* sums) const {
    const float from_mean = x[row * channels + c] - mean[c];
    sums[0] += from_mean * from_mean;
  }
};
struct StoreVariance {
  float* variance;
  float* inverse;
  double rows, epsilon;
  DTF_HOST_DEVICE void operator()(int64_t c, const double* totals) const {
    variance[c] = static_cast<float>(totals[0] / (rows > 1 ? rows - 1 : 1));
    inverse[c] = static_cast<float>(1 / sqrt(totals[0] / rows + epsilon));
  }
};
struct BatchNormAt {
  const float* x;
  const float* scale;
  const float* offset;
  const float* mean;
  const float* inverse;
  float* y;
  int64_t channels;
  DTF_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t c = i % channels;
    y[i] = (x[i] - mean[c]) * (inverse[c] * scale[c]) + offset[c];
  }
};

class BatchNormKernel final : public Kernel {
 public:
  explicit BatchNormKernel(const Operation& o)
      : sizes_(o.inputs[0]), c_(sizes_.rows, sizes_.channels), epsilon_(o.number("epsilon")) {}
  void launch(Device& device, const Arguments& a) override {
    const auto sums = reinterpret_cast<float*>(a.workspace);
    const auto rows = static_cast<double>(sizes_.rows);
    sumColumns<1>(device, c_, sums, ValueTerm{a.in(0), sizes_.channels}, StoreMean{a.out(1), rows});
    sumColumns<1>(device, c_, sums, SquareTerm{a.in(0), a.out(1), sizes_.channels},
                  StoreVariance{a.out(2), a.out(3), rows, epsilon_});
    forElements(
        device, sizes_.elements(),
        BatchNormAt{a.in(0), a.in(1), a.in(2), a.out(1), a.out(3), a.out(0), sizes_.channels});
  }
  size_t workspaceBytes() const override { return c_.bytes(1); }
  bool canOverwrite(int output, int input) const override { return output == 0 && input == 0; }

 private:
  const Sizes sizes_;
  const ColumnChunks c_;
  const double epsilon_;
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
    const int64_t c = i % channels;
    y[i] = (x[i] - mean[c]) * (1.0f / sqrtf(variance[c] + epsilon) * scale[c]) + offset[c];
  }
};
class BatchNormInferenceKernel final : public Kernel {
 public:
  explicit BatchNormInferenceKernel(const Operation& o)
      : sizes_(o.inputs[0]), epsilon_(static_cast<float>(o.number("epsilon"))) {}
  void launch(Device& device, const Arguments& a) override {
    forElements(device, sizes_.elements(),
                InferenceAt{a.in(0), a.in(1), a.in(2), a.in(3), a.in(4), a.out(0), sizes_.channels,
                            epsilon_});
  }
  bool canOverwrite(int output, int input) const override { return output == 0 && input == 0; }

 private:
  const Sizes sizes_;
  const float epsilon_;
};

// Inputs dy, x, scale, mean, inverse; outputs dx, dscale, doffset. The statistics are by channel.
struct BatchGradTerms {
  const float* dy;
  const float* x;
  const float* mean;
  int64_t channels;
  DTF_HOST_DEVICE void operator()(int64_t row, int64_t c, float* sums) const {
    const float d = dy[row * channels + c];
    sums[0] += d;
    sums[1] += d * (x[row * channels + c] - mean[c]);
  }
};
struct StoreBatchGrads {
  const float* inverse;
  float* dscale;
  float* doffset;
  DTF_HOST_DEVICE void operator()(int64_t c, const double* totals) const {
    doffset[c] = static_cast<float>(totals[0]);
    dscale[c] = static_cast<float>(totals[1] * static_cast<double>(inverse[c]));
  }
};
// dx = inverse * scale * (dy - mean(dy) - h * mean(dy * h)), where h = (x - mean) * inverse.
struct BatchGradAt {
  const float* dy;
  const float* x;
  const float* scale;
  const float* mean;
  const float* inverse;
  const float* dscale;
  const float* doffset;
  float* dx;
  int64_t channels;
  float rows;
  DTF_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t c = i % channels;
    const float h = (x[i] - mean[c]) * inverse[c];
    const float rest = dy[i] - doffset[c] / rows - h * (dscale[c] / rows);
    dx[i] = rest * (inverse[c] * scale[c]);
  }
};
class BatchNormGradKernel final : public Kernel {
 public:
  explicit BatchNormGradKernel(const Operation& o)
      : sizes_(o.inputs[1]), c_(sizes_.rows, sizes_.channels) {}
  void launch(Device& device, const Arguments& a) override {
    sumColumns<2>(device, c_, reinterpret_cast<float*>(a.workspace),
                  BatchGradTerms{a.in(0), a.in(1), a.in(3), sizes_.channels},
                  StoreBatchGrads{a.in(4), a.out(1), a.out(2)});
    forElements(device, sizes_.elements(),
                BatchGradAt{a.in(0), a.in(1), a.in(2), a.in(3), a.in(4), a.out(1), a.out(2),
                            a.out(0), sizes_.channels, static_cast<float>(sizes_.rows)});
  }
  size_t workspaceBytes() const override { return c_.bytes(2); }
  bool canOverwrite(int output, int input) const override { return output == 0 && input == 0; }

 private:
  const Sizes sizes_;
  const ColumnChunks c_;
};

struct LayerNormAt {
  const float* x;
  const float* scale;
  const float* offset;
  float* y;
  float* mean;
  float* inverse;
  int64_t channels;
  double epsilon;
  template <class T>
  DTF_HOST_DEVICE void operator()(const T& team, int64_t row) const {
    const float* const from = x + row * channels;
    float* const to = y + row * channels;
    const auto n = static_cast<double>(channels);
    double sum = 0;
    for (int64_t i = team.rank(); i < channels; i += team.size())
      sum += static_cast<double>(from[i]);
    const auto centre = static_cast<float>(team.sum(sum) / n);
    double squares = 0;
    for (int64_t i = team.rank(); i < channels; i += team.size()) {
      const auto from_mean = static_cast<double>(from[i] - centre);
      squares += from_mean * from_mean;
    }
    const auto factor = static_cast<float>(1 / sqrt(team.sum(squares) / n + epsilon));
    if (team.rank() == 0) mean[row] = centre, inverse[row] = factor;
    for (int64_t i = team.rank(); i < channels; i += team.size())
      to[i] = (from[i] - centre) * factor * scale[i] + offset[i];
  }
};
class LayerNormKernel final : public Kernel {
 public:
  explicit LayerNormKernel(const Operation& o)
      : sizes_(o.inputs[0]), epsilon_(o.number("epsilon")) {}
  void launch(Device& device, const Arguments& a) override {
    forTeams(device, sizes_.rows, sizes_.channels,
             LayerNormAt{a.in(0), a.in(1), a.in(2), a.out(0), a.out(1), a.out(2), sizes_.channels,
                         epsilon_});
  }
  bool canOverwrite(int output, int input) const override { return output == 0 && input == 0; }

 private:
  const Sizes sizes_;
  const double epsilon_;
};

// As of a batch, with statistics by row.
struct LayerGradTerms {
  const float* dy;
  const float* x;
  const float* mean;
  const float* inverse;
  int64_t channels;
  DTF_HOST_DEVICE void operator()(int64_t row, int64_t c, float* sums) const {
    const float d = dy[row * channels + c];
    sums[0] += d;
    sums[1] += d * ((x[row * channels + c] - mean[row]) * inverse[row]);
  }
};
struct StoreLayerGrads {
  float* dscale;
  float* doffset;
  DTF_HOST_DEVICE void operator()(int64_t c, const double* totals) const {
    doffset[c] = static_cast<float>(totals[0]);
    dscale[c] = static_cast<float>(totals[1]);
  }
};
struct LayerGradAt {
  const float* dy;
  const float* x;
  const float* scale;
  const float* mean;
  const float* inverse;
  float* dx;
  int64_t channels;
  template <class T>
  DTF_HOST_DEVICE void operator()(const T& team, int64_t row) const {
    const int64_t first = row * channels;
    const auto n = static_cast<float>(channels);
    float plain = 0, along = 0;
    for (int64_t i = team.rank(); i < channels; i += team.size()) {
      const float scaled = dy[first + i] * scale[i];
      plain += scaled;
      along += scaled * ((x[first + i] - mean[row]) * inverse[row]);
    }
    const float mean_plain = team.sum(plain) / n, mean_along = team.sum(along) / n;
    for (int64_t i = team.rank(); i < channels; i += team.size()) {
      const float h = (x[first + i] - mean[row]) * inverse[row];
      dx[first + i] = inverse[row] * (dy[first + i] * scale[i] - mean_plain - h * mean_along);
    }
  }
};
class LayerNormGradKernel final : public Kernel {
 public:
  explicit LayerNormGradKernel(const Operation& o)
      : sizes_(o.inputs[1]), c_(sizes_.rows, sizes_.channels) {}
  void launch(Device& device, const Arguments& a) override {
    sumColumns<2>(device, c_, reinterpret_cast<float*>(a.workspace),
                  LayerGradTerms{a.in(0), a.in(1), a.in(3), a.in(4), sizes_.channels},
                  StoreLayerGrads{a.out(1), a.out(2)});
    forTeams(device, sizes_.rows, sizes_.channels,
             LayerGradAt{a.in(0), a.in(1), a.in(2), a.in(3), a.in(4), a.out(0), sizes_.channels});
  }
  size_t workspaceBytes() const override { return c_.bytes(2); }
  bool canOverwrite(int output, int input) const override { return output == 0 && input == 0; }

 private:
  const Sizes sizes_;
  const ColumnChunks c_;
};

}  // namespace

void addNormKernels(KernelTable& table) {
  table["FusedBatchNorm"] = make<BatchNormKernel>;
  table["FusedBatchNormInference"] = make<BatchNormInferenceKernel>;
  table["FusedBatchNormGrad"] = make<BatchNormGradKernel>;
  table["LayerNorm"] = make<LayerNormKernel>;
  table["LayerNormGrad"] = make<LayerNormGradKernel>;
}

}  // namespace dtf::gpu
