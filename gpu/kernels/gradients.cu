// Checks, norms and scaling of the gradients of variables that a device keeps, before an update:
// common/runtime/variable_ops.h.

#include <cmath>
#include <cstring>

#include "gpu/arena_packs.h"
#include "gpu/element_kernels.h"

namespace dtf::gpu {
namespace {

struct MeanAt {
  const float* towers[runtime::kTowersMax];
  int count;
  float share;
  float* mean;
  DTF_HOST_DEVICE void operator()(int64_t pack) const {
    ArenaPack sum = load<kArenaPack>(towers[0], pack);
    for (int tower = 1; tower < count; ++tower) sum += load<kArenaPack>(towers[tower], pack);
    for (int i = 0; i < kArenaPack; ++i) sum.at[i] *= share;
    store(mean, pack, sum);
  }
};
// Checks for one byte of `kinds` for each line of `lines`.
bool areKindsOf(const TensorSpec& kinds, const TensorSpec& lines) {
  return kinds.elements() * kPacksOfLine * kArenaPack == lines.elements();
}
void requireSameLines(const Operation& o, bool are_same) {
  if (!are_same)
    throw PluginError(DTF_PLUGIN_BAD_CONFIG,
                      "Node '" + o.name + "': its tensors are not of the same lines.");
}

class MeanOfTowersKernel final : public Kernel {
 public:
  explicit MeanOfTowersKernel(const Operation& o)
      : packs_(o.outputs[0].elements() / kArenaPack),
        towers_(static_cast<int>(o.inputs.size())),
        share_(static_cast<float>(o.number("share"))) {
    if (towers_ < 1 || towers_ > runtime::kTowersMax ||
        packs_ * kArenaPack != o.outputs[0].elements())
      throw PluginError(DTF_PLUGIN_BAD_CONFIG, "Node '" + o.name + "': of 1 to " +
                                                   std::to_string(runtime::kTowersMax) +
                                                   " towers' lines.");
    for (const TensorSpec& tower : o.inputs)
      requireSameLines(o, tower.elements() == o.outputs[0].elements());
  }
  void launch(Device& device, const Arguments& a) override {
    MeanAt mean{{}, towers_, share_, a.out(0)};
    for (int tower = 0; tower < towers_; ++tower)
      mean.towers[tower] = a.in(static_cast<size_t>(tower));
    forElements(device, packs_, mean);
  }
  bool canOverwrite(int, int) const override { return true; }

 private:
  const int64_t packs_;
  const int towers_;
  const float share_;
};

DTF_HOST_DEVICE inline bool isFinite(float x) {
  uint32_t bits = 0;
  memcpy(&bits, &x, sizeof bits);
  return (bits & 0x7f800000u) != 0x7f800000u;
}

// Sums the parts' results with all threads of a team, in a fixed order.
template <class Total, class T>
DTF_HOST_DEVICE Total sumOfParts(const T& team, const Total* parts, int64_t count) {
  Total sum = 0;
  for (int64_t part = team.rank(); part < count; part += team.size()) sum += parts[part];
  return team.sum(sum);
}

// Counts the elements in each part of the `lines` that are infinite or NaN.
struct CountNonFiniteAt {
  const int32_t* lines;
  const float* gradient;
  int64_t* counts;
  int64_t elements, each;
  template <class T>
  DTF_HOST_DEVICE void operator()(const T& team, int64_t part) const {
    const int64_t first = part * each, end = first + each;
    const int64_t last = end < elements ? end : elements;
    int64_t count = 0;
    for (int64_t i = first + team.rank(); i < last; i += team.size())
      if (!isFinite(gradient[lines[i / runtime::kArenaLine] * runtime::kArenaLine +
                             i % runtime::kArenaLine]))
        ++count;
    count = team.sum(count);
    if (team.rank() == 0) counts[part] = count;
  }
};
struct SumOfCountsAt {
  const int64_t* counts;
  int64_t parts;
  int64_t* total;
  template <class T>
  DTF_HOST_DEVICE void operator()(const T& team, int64_t) const {
    const int64_t sum = sumOfParts(team, counts, parts);
    if (team.rank() == 0) *total = sum;
  }
};
class CheckStatisticsKernel final : public Kernel {
 public:
  explicit CheckStatisticsKernel(const Operation& o)
      : elements_(o.inputs[0].elements() * runtime::kArenaLine),
        parts_((elements_ + kEach - 1) / kEach) {}
  void launch(Device& device, const Arguments& a) override {
    auto* const counts = reinterpret_cast<int64_t*>(a.workspace);
    forTeams(device, parts_, kEach,
             CountNonFiniteAt{a.in<int32_t>(0), a.in(1), counts, elements_, kEach});
    forTeams(device, 1, parts_, SumOfCountsAt{counts, parts_, a.out<int64_t>(0)});
  }
  size_t workspaceBytes() const override { return static_cast<size_t>(parts_) * sizeof(int64_t); }

 private:
  static constexpr int64_t kEach = 1024;

  const int64_t elements_, parts_;
};

// Sums of squares of trained elements, by parts of equal size.
struct SquaresAt {
  const uint8_t* kinds;
  const float* gradient;
  double* sums;
  int64_t packs, packs_each;
  template <class T>
  DTF_HOST_DEVICE void operator()(const T& team, int64_t part) const {
    const int64_t first = part * packs_each, end = first + packs_each;
    const int64_t last = end < packs ? end : packs;
    double sum = 0;
    for (int64_t pack = first + team.rank(); pack < last; pack += team.size()) {
      if (kinds[pack / kPacksOfLine] != 0) continue;
      const ArenaPack g = load<kArenaPack>(gradient, pack);
      for (int i = 0; i < kArenaPack; ++i)
        sum += static_cast<double>(g.at[i]) * static_cast<double>(g.at[i]);
    }
    sum = team.sum(sum);
    if (team.rank() == 0) sums[part] = sum;
  }
};
struct RootOfSumsAt {
  const double* sums;
  int64_t parts;
  float* norm;
  template <class T>
  DTF_HOST_DEVICE void operator()(const T& team, int64_t) const {
    const double sum = sumOfParts(team, sums, parts);
    if (team.rank() == 0) *norm = static_cast<float>(std::sqrt(sum));
  }
};
class NormOfTrainedKernel final : public Kernel {
 public:
  explicit NormOfTrainedKernel(const Operation& o) : packs_(o.inputs[1].elements() / kArenaPack) {
    requireSameLines(o, areKindsOf(o.inputs[0], o.inputs[1]));
  }
  void launch(Device& device, const Arguments& a) override {
    auto* const sums = reinterpret_cast<double*>(a.workspace);
    const int64_t each = (packs_ + kParts - 1) / kParts;
    forTeams(device, kParts, each, SquaresAt{a.in<uint8_t>(0), a.in(1), sums, packs_, each});
    forTeams(device, 1, kParts, RootOfSumsAt{sums, kParts, a.out(0)});
  }
  size_t workspaceBytes() const override { return kParts * sizeof(double); }

 private:
  static constexpr int64_t kParts = 1024;

  const int64_t packs_;
};

struct ScaleTrainedAt {
  const float* factor;
  const uint8_t* kinds;
  const float* gradient;
  float* scaled;
  DTF_HOST_DEVICE void operator()(int64_t pack) const {
    const float by = kinds[pack / kPacksOfLine] == 0 ? *factor : 1.0f;
    ArenaPack g = load<kArenaPack>(gradient, pack);
    for (int i = 0; i < kArenaPack; ++i) g.at[i] *= by;
    store(scaled, pack, g);
  }
};
class ScaleTrainedKernel final : public Kernel {
 public:
  explicit ScaleTrainedKernel(const Operation& o) : packs_(o.inputs[2].elements() / kArenaPack) {
    requireSameLines(o, areKindsOf(o.inputs[1], o.inputs[2]) &&
                            o.outputs[0].elements() == o.inputs[2].elements());
  }
  void launch(Device& device, const Arguments& a) override {
    forElements(device, packs_, ScaleTrainedAt{a.in(0), a.in<uint8_t>(1), a.in(2), a.out(0)});
  }
  bool canOverwrite(int, int input) const override { return input == 2; }

 private:
  const int64_t packs_;
};

}  // namespace

void addGradientKernels(KernelTable& table) {
  const auto add = [&table](std::string_view op, KernelFactory factory) {
    table[std::string(op)] = factory;
  };
  add(runtime::kMeanOfTowersOp, make<MeanOfTowersKernel>);
  add(runtime::kCheckStatisticsOp, make<CheckStatisticsKernel>);
  add(runtime::kNormOfTrainedOp, make<NormOfTrainedKernel>);
  add(runtime::kScaleTrainedOp, make<ScaleTrainedKernel>);
}

}  // namespace dtf::gpu
