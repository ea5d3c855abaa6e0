// _FusedSoftmax: a classifier's last layer with its loss and all gradients in two launches; see
// common/runtime/fusion.h.

#include <cmath>

#include "gpu/element_kernels.h"
#include "gpu/labels.h"

namespace dtf::gpu {
namespace {

constexpr int64_t kClassesMax = 16;

// The split of a team for sums by class: `wide` classes side by side, each by `lanes` threads.
template <class T>
struct ClassShares {
  DTF_HOST_DEVICE explicit ClassShares(const T& team)
      : wide(team.size() < kClassesMax ? team.size() : kClassesMax),
        first(team.rank() % wide),
        lane(team.rank() / wide),
        lanes(team.size() / wide) {}
  int64_t wide, first, lane, lanes;
};

// Computes a row's logits, its loss, whether its largest logit is the label's, and its gradient in
// the logits' place.
template <class X>
struct RowAt {
  const X* x;
  const float* weights;
  const float* bias;
  Labels labels;
  float scale, gradient_scale;
  float* losses;
  float* hits;
  float* gradients;  // [rows, classes]
  int64_t inputs, classes;
  template <class T>
  DTF_HOST_DEVICE void operator()(const T& team, int64_t row) const {
    const ClassShares<T> share(team);
    float* const g = gradients + row * classes;
    for (int64_t begin = 0; begin < classes; begin += share.wide) {
      const int64_t c = begin + share.first;
      float sum = 0;
      if (c < classes)
#if defined(__CUDA_ARCH__)
#pragma unroll 8
#endif
        for (int64_t k = share.lane; k < inputs; k += share.lanes)
          sum += static_cast<float>(x[row * inputs + k]) * weights[k * classes + c];
      sum = team.sumOfEvery(share.wide, sum);
      if (share.lane == 0 && c < classes) g[c] = sum * scale + bias[c];
    }
    team.wait();
    // Loads all of them at once: a single wait for the memory.
    float logits[kClassesMax];
    for (int64_t c = 0; c < kClassesMax; ++c) logits[c] = c < classes ? g[c] : 0;
    const int64_t label = labels.at(row);
    int64_t best = 0;
    float max = logits[0], largest = logits[0], of_label = logits[0];
    for (int64_t c = 1; c < kClassesMax; ++c) {
      if (c >= classes) continue;
      const float logit = logits[c];
      if (logit > largest) largest = logit, best = c;
      if (logit > max || logit != logit) max = logit;
      if (c == label) of_label = logit;
    }
    float total = 0;
    for (int64_t c = 0; c < kClassesMax; ++c)
      if (c < classes) total += expf(logits[c] - max);
    if (team.rank() == 0) {
      losses[row] = logf(total) - (of_label - max);
      hits[row] = best == label ? 1.0f : 0.0f;
    }
    team.wait();
    for (int64_t c = team.rank(); c < classes; c += team.size())
      g[c] = (expf(g[c] - max) / total - (c == label ? 1.0f : 0.0f)) * gradient_scale;
  }
};

// Part k of [0, inputs) is the gradient of that row of the weights; the next part is the bias's
// gradient; the last one computes the means.
template <class X>
struct TotalsAt {
  const X* x;
  const float* gradients;
  const float* losses;
  const float* hits;
  float scale;
  float* weights_gradient;  // null: not wanted; the same below
  float* bias_gradient;
  float* loss;
  float* accuracy;
  int64_t rows, inputs, classes, first_part;
  template <class T>
  DTF_HOST_DEVICE void operator()(const T& team, int64_t i) const {
    const int64_t part = first_part + i;
    if (part == inputs + 1) return means(team);
    float* const to = part == inputs ? bias_gradient : weights_gradient + part * classes;
    if (part == inputs ? bias_gradient == nullptr : weights_gradient == nullptr) return;
    const ClassShares<T> share(team);
    for (int64_t begin = 0; begin < classes; begin += share.wide) {
      const int64_t c = begin + share.first;
      float sum = 0;
      if (c < classes)
#if defined(__CUDA_ARCH__)
#pragma unroll 8
#endif
        for (int64_t row = share.lane; row < rows; row += share.lanes)
          sum += (part == inputs ? 1.0f : static_cast<float>(x[row * inputs + part]) * scale) *
                 gradients[row * classes + c];
      sum = team.sumOfEvery(share.wide, sum);
      if (share.lane == 0 && c < classes) to[c] = sum;
    }
  }

 private:
  template <class T>
  DTF_HOST_DEVICE void means(const T& team) const {
    double of_losses = 0, of_hits = 0;
    for (int64_t row = team.rank(); row < rows; row += team.size()) {
      of_losses += static_cast<double>(losses[row]);
      of_hits += static_cast<double>(hits[row]);
    }
    const double all_losses = team.sum(of_losses), all_hits = team.sum(of_hits);
    if (team.rank() != 0) return;
    const auto n = static_cast<double>(rows);
    if (loss != nullptr) *loss = static_cast<float>(all_losses / n);
    if (accuracy != nullptr) *accuracy = static_cast<float>(all_hits / n);
  }
};

template <class X>
class FusedSoftmaxKernel final : public Kernel {
 public:
  explicit FusedSoftmaxKernel(const Operation& o)
      : rows_(o.inputs[3].elements()),
        inputs_(o.inputs[1].dims[0]),
        classes_(o.inputs[1].dims[1]),
        scale_(static_cast<float>(o.number("scale", 1))),
        gradient_scale_(static_cast<float>(o.number("gradient_scale"))),
        labels_(o, 3, classes_) {
    int output = 0;
    for (size_t i = 0; i < kResults; ++i)
      if (o.flag(kNames[i])) outputs_[i] = output++;
  }
  void prepare(Device& device) override { labels_.prepare(device); }
  void launch(Device& device, const Arguments& a) override {
    const auto memory = reinterpret_cast<float*>(a.workspace);
    float *const losses = memory, *const hits = memory + rows_;
    float* const kept = find(a, kLogitsGradient);
    float* const gradients = kept != nullptr ? kept : memory + 2 * rows_;
    const X* const x = a.in<X>(0);
    forTeams(device, rows_, inputs_,
             RowAt<X>{x, a.in(1), a.in(2), labels_.bound(device, a), scale_, gradient_scale_,
                      losses, hits, gradients, inputs_, classes_});
    float *const of_weights = find(a, kWeightsGradient), *const of_bias = find(a, kBiasGradient);
    const int64_t first = of_weights == nullptr ? inputs_ : 0;
    forTeams(device, inputs_ + 2 - first, rows_ * kClassesMax,
             TotalsAt<X>{x, gradients, losses, hits, scale_, of_weights, of_bias, find(a, kLoss),
                         find(a, kAccuracy), rows_, inputs_, classes_, first});
  }
  size_t workspaceBytes() const override {
    return static_cast<size_t>(rows_ * (classes_ + 2)) * sizeof(float);
  }

 private:
  enum Result : uint8_t { kLoss, kAccuracy, kLogitsGradient, kWeightsGradient, kBiasGradient };
  static constexpr size_t kResults = 5;
  static constexpr const char* kNames[kResults] = {"loss", "accuracy", "logits_gradient",
                                                   "weights_gradient", "bias_gradient"};
  float* find(const Arguments& a, Result result) const {
    return outputs_[result] < 0 ? nullptr : a.out(static_cast<size_t>(outputs_[result]));
  }

  const int64_t rows_, inputs_, classes_;
  const float scale_, gradient_scale_;
  LabelInput labels_;
  int outputs_[kResults] = {-1, -1, -1, -1, -1};
};

std::unique_ptr<Kernel> fusedSoftmax(const Operation& o) {
  if (o.inputs[1].dims[1] > kClassesMax)
    throw PluginError(DTF_PLUGIN_INTERNAL, "Node '" + o.name + "': " + o.op + " has at most " +
                                               std::to_string(kClassesMax) + " classes.");
  if (o.inputs[0].type == Type::kUInt8) return make<FusedSoftmaxKernel<uint8_t>>(o);
  return make<FusedSoftmaxKernel<float>>(o);
}

}  // namespace

void addFusedSoftmaxKernel(KernelTable& table) {
  table["_FusedSoftmax"] = fusedSoftmax;
}

}  // namespace dtf::gpu
