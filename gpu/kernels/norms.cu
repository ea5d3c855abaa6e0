// Normalisation of each row; the semantics are in common/graph/standard_norm_ops.cc.

#include <cmath>

#include "gpu/channel_kernels.h"
#include "gpu/element_kernels.h"

namespace dtf::gpu {
namespace {

// x is [rows, channels].
struct Sizes {
  explicit Sizes(const TensorSpec& x) : rows(x.rows()), channels(x.lastDim()) {}
  int64_t rows, channels;
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

// Like a batch's, with statistics by row.
struct LayerGradTerms {
  const float* dy;
  const float* x;
  const float* mean;
  const float* inverse;
  int64_t channels;
  DTF_HOST_DEVICE LayerGradTerms of(int64_t) const { return *this; }
  template <class Sums>
  DTF_HOST_DEVICE void operator()(int64_t at, Sums& sums) const {
    const int64_t row = quotientOf(at, channels);
    sums[0].at[0] += dy[at];
    sums[1].at[0] += dy[at] * ((x[at] - mean[row]) * inverse[row]);
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
      : sizes_(o.inputs[1]), packs_(sizes_.rows, sizes_.channels) {}
  void launch(Device& device, const Arguments& a) override {
    sumChannels<2>(device, packs_, reinterpret_cast<float*>(a.workspace),
                   LayerGradTerms{a.in(0), a.in(1), a.in(3), a.in(4), sizes_.channels},
                   StoreLayerGrads{a.out(1), a.out(2)});
    forTeams(device, sizes_.rows, sizes_.channels,
             LayerGradAt{a.in(0), a.in(1), a.in(2), a.in(3), a.in(4), a.out(0), sizes_.channels});
  }
  size_t workspaceBytes() const override { return channelSumBytes(packs_, 2); }
  bool canOverwrite(int output, int input) const override { return output == 0 && input == 0; }

 private:
  const Sizes sizes_;
  const ChannelPacks<1> packs_;
};

}  // namespace

void addNormKernels(KernelTable& table) {
  table["LayerNorm"] = make<LayerNormKernel>;
  table["LayerNormGrad"] = make<LayerNormGradKernel>;
}

}  // namespace dtf::gpu
