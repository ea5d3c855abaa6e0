// What becomes of the variables that a device keeps, and of their gradients: common/runtime/variable_ops.h. Compiled without
// contraction, so an update has the bits of one by a ps.

#include <cmath>
#include <cstring>

#include "common/cluster/optimizer_spec.h"
#include "common/ps/optimizer_formulae.h"
#include "common/runtime/variable_ops.h"
#include "gpu/element_kernels.h"
#include "gpu/pack.h"

namespace dtf::gpu {
namespace {

constexpr int kPack = 4;
constexpr int64_t kLine = runtime::kArenaLine;

float numberOf(const Operation& o, std::string_view key) {
  return static_cast<float>(o.number(key));
}

// A rule is a formula of optimizer_formulae.h with its constants; kSlots of a variable's slots are its own.
struct GradientDescent {
  static constexpr int kSlots = 0;
  explicit GradientDescent(const Operation&) {}
  DTF_HOST_DEVICE float operator()(float w, float*, float g, float lr) const {
    return ps::gradientDescentOf(w, g, lr);
  }
};
struct Momentum {
  static constexpr int kSlots = 1;
  float momentum;
  bool use_nesterov;
  explicit Momentum(const Operation& o)
      : momentum(numberOf(o, "momentum")), use_nesterov(o.flag("use_nesterov")) {}
  DTF_HOST_DEVICE float operator()(float w, float* slots, float g, float lr) const {
    return use_nesterov ? ps::nesterovOf(w, slots[0], g, lr, momentum)
                        : ps::momentumOf(w, slots[0], g, lr, momentum);
  }
};
struct Adagrad {
  static constexpr int kSlots = 1;
  explicit Adagrad(const Operation&) {}
  DTF_HOST_DEVICE float operator()(float w, float* slots, float g, float lr) const {
    return ps::adagradOf(w, slots[0], g, lr);
  }
};
struct Adadelta {
  static constexpr int kSlots = 2;
  float rho, one_minus_rho, epsilon;
  explicit Adadelta(const Operation& o)
      : rho(numberOf(o, "rho")),
        one_minus_rho(numberOf(o, "one_minus_rho")),
        epsilon(numberOf(o, "epsilon")) {}
  DTF_HOST_DEVICE float operator()(float w, float* slots, float g, float lr) const {
    return ps::adadeltaOf(w, slots[0], slots[1], g, lr, rho, one_minus_rho, epsilon);
  }
};
ps::Moments momentsOf(const Operation& o) {
  return {numberOf(o, "one_minus_beta1"), numberOf(o, "one_minus_beta2"), numberOf(o, "epsilon")};
}
struct Adam {
  static constexpr int kSlots = 2;
  ps::Moments moments;
  explicit Adam(const Operation& o) : moments(momentsOf(o)) {}
  DTF_HOST_DEVICE float operator()(float w, float* slots, float g, float lr) const {
    return ps::adamOf(w, slots[0], slots[1], g, lr, moments);
  }
};
struct AdamW {
  static constexpr int kSlots = 2;
  ps::Moments moments;
  float weight_decay;
  explicit AdamW(const Operation& o)
      : moments(momentsOf(o)), weight_decay(numberOf(o, "weight_decay")) {}
  DTF_HOST_DEVICE float operator()(float w, float* slots, float g, float lr) const {
    return ps::adamWOf(w, slots[0], slots[1], g, lr, moments, weight_decay);
  }
};
struct RmsProp {
  static constexpr int kSlots = 2;
  float one_minus_decay, momentum, epsilon;
  explicit RmsProp(const Operation& o)
      : one_minus_decay(numberOf(o, "one_minus_rho")),
        momentum(numberOf(o, "momentum")),
        epsilon(numberOf(o, "epsilon")) {}
  DTF_HOST_DEVICE float operator()(float w, float* slots, float g, float lr) const {
    return ps::rmsPropOf(w, slots[0], slots[1], g, lr, one_minus_decay, momentum, epsilon);
  }
};
struct CenteredRmsProp {
  static constexpr int kSlots = 3;
  RmsProp plain;
  explicit CenteredRmsProp(const Operation& o) : plain(o) {}
  DTF_HOST_DEVICE float operator()(float w, float* slots, float g, float lr) const {
    return ps::centeredRmsPropOf(w, slots[0], slots[1], slots[2], g, lr, plain.one_minus_decay,
                                 plain.momentum, plain.epsilon);
  }
};
struct Ftrl {
  static constexpr int kSlots = 2;
  ps::FtrlConstants constants;
  explicit Ftrl(const Operation& o)
      : constants{0, numberOf(o, "l1"), numberOf(o, "l2_twice"),
                  numberOf(o, "l2_shrinkage_twice")} {}
  DTF_HOST_DEVICE float operator()(float w, float* slots, float g, float lr) const {
    ps::FtrlConstants c = constants;
    c.lr = lr;
    const float before = slots[0];
    slots[0] = before + g * g;
    return ps::ftrlOf(w, slots[1], g, std::sqrt(before), std::sqrt(slots[0]), c);
  }
};

// What is common to all rules, and where everything lies. All arrays but the first three are of the arena.
struct Arena {
  const float* learning_rate;
  const uint8_t* kinds;  // by line; 0: trained, else a statistic, whose rate is rates[kind - 1]
  const float* rates;
  const float* gradient;
  const float* parameters;
  float* new_parameters;
  float* slots[3];
  float* averages;  // null: none are kept
  float clip_by_value, l2, one_minus_average_decay;
};

// By packs, each of which lies within a line.
template <class Rule>
struct UpdateAt {
  Rule rule;
  Arena arena;

  DTF_HOST_DEVICE float gradientOf(float g, float w) const {
    if (arena.clip_by_value != 0) g = ps::clippedOf(g, arena.clip_by_value);
    if (arena.l2 != 0) g += arena.l2 * w;
    return g;
  }
  // Changes the slots, too.
  DTF_HOST_DEVICE Pack<float, kPack> train(int64_t pack, const Pack<float, kPack>& w,
                                           const Pack<float, kPack>& g) const {
    constexpr int kArrays = Rule::kSlots == 0 ? 1 : Rule::kSlots;
    Pack<float, kPack> slots[kArrays] = {};
    for (int s = 0; s < Rule::kSlots; ++s) slots[s] = load<kPack>(arena.slots[s], pack);
    Pack<float, kPack> trained;
    for (int i = 0; i < kPack; ++i) {
      float own[kArrays];
      for (int s = 0; s < kArrays; ++s) own[s] = slots[s].at[i];
      trained.at[i] = rule(w.at[i], own, gradientOf(g.at[i], w.at[i]), *arena.learning_rate);
      for (int s = 0; s < kArrays; ++s) slots[s].at[i] = own[s];
    }
    for (int s = 0; s < Rule::kSlots; ++s) store(arena.slots[s], pack, slots[s]);
    return trained;
  }
  DTF_HOST_DEVICE static Pack<float, kPack> moved(const Pack<float, kPack>& from,
                                                  const Pack<float, kPack>& to, float rate) {
    Pack<float, kPack> result;
    for (int i = 0; i < kPack; ++i) result.at[i] = ps::movedOf(from.at[i], to.at[i], rate);
    return result;
  }
  DTF_HOST_DEVICE void operator()(int64_t pack) const {
    const uint8_t kind = arena.kinds[pack / (kLine / kPack)];
    const Pack<float, kPack> w = load<kPack>(arena.parameters, pack);
    const Pack<float, kPack> g = load<kPack>(arena.gradient, pack);
    const Pack<float, kPack> updated =
        kind == 0 ? train(pack, w, g) : moved(w, g, arena.rates[kind - 1]);
    store(arena.new_parameters, pack, updated);
    if (arena.averages == nullptr) return;
    // That of a statistic is the statistic itself.
    store(arena.averages, pack,
          kind == 0
              ? moved(load<kPack>(arena.averages, pack), updated, arena.one_minus_average_decay)
              : updated);
  }
};

template <class Rule>
class UpdateKernel final : public Kernel {
 public:
  static constexpr int kParameters = 4;  // among the inputs; slots, and then averages, follow
  explicit UpdateKernel(const Operation& o)
      : rule_(o),
        packs_(o.outputs[0].elements() / kPack),
        averages_(o.flag("averages")),
        clip_by_value_(numberOf(o, "clip_by_value")),
        l2_(numberOf(o, "l2")),
        one_minus_average_decay_(numberOf(o, "one_minus_average_decay")) {
    const size_t arrays = 1 + static_cast<size_t>(Rule::kSlots) + (averages_ ? 1 : 0);
    bool fits = o.inputs.size() == kParameters + arrays && o.outputs.size() == arrays &&
                o.inputs[1].elements() == packs_ / (kLine / kPack);
    for (const TensorSpec& output : o.outputs)
      fits = fits && output.elements() == packs_ * kPack && output.elements() % kLine == 0;
    for (size_t i = kParameters - 1; fits && i < o.inputs.size(); ++i)
      fits = o.inputs[i].elements() == packs_ * kPack;
    if (!fits)
      throw PluginError(DTF_PLUGIN_BAD_CONFIG,
                        "Node '" + o.name + "': not the arrays that its optimizer has.");
  }
  void launch(Device& device, const Arguments& a) override {
    Arena arena{a.in(0),
                a.in<uint8_t>(1),
                a.in(2),
                a.in(3),
                a.in(kParameters),
                a.out(0),
                {},
                averages_ ? a.out(1 + static_cast<size_t>(Rule::kSlots)) : nullptr,
                clip_by_value_,
                l2_,
                one_minus_average_decay_};
    for (int s = 0; s < Rule::kSlots; ++s) arena.slots[s] = a.out(1 + static_cast<size_t>(s));
    forElements(device, packs_, UpdateAt<Rule>{rule_, arena});
  }
  bool canOverwrite(int output, int input) const override { return input == kParameters + output; }

 private:
  const Rule rule_;
  const int64_t packs_;
  const bool averages_;
  const float clip_by_value_, l2_, one_minus_average_decay_;
};

std::unique_ptr<Kernel> applyOptimizer(const Operation& o) {
  using Kind = cluster::OptimizerSpec::Kind;
  switch (static_cast<Kind>(o.integer("kind"))) {
    case Kind::kGradientDescent:
      return make<UpdateKernel<GradientDescent>>(o);
    case Kind::kMomentum:
      return make<UpdateKernel<Momentum>>(o);
    case Kind::kAdagrad:
      return make<UpdateKernel<Adagrad>>(o);
    case Kind::kAdadelta:
      return make<UpdateKernel<Adadelta>>(o);
    case Kind::kAdam:
      return make<UpdateKernel<Adam>>(o);
    case Kind::kAdamW:
      return make<UpdateKernel<AdamW>>(o);
    case Kind::kRmsProp:
      if (o.flag("centered")) return make<UpdateKernel<CenteredRmsProp>>(o);
      return make<UpdateKernel<RmsProp>>(o);
    case Kind::kFtrl:
      return make<UpdateKernel<Ftrl>>(o);
    case Kind::kLars:
    case Kind::kLamb:
      break;
  }
  throw PluginError(DTF_PLUGIN_BAD_CONFIG,
                    "Node '" + o.name + "': no GPU kernel updates with this optimizer.");
}

// ---- what comes before an update

struct MeanAt {
  const float* towers[runtime::kTowersMax];
  int count;
  float share;
  float* mean;
  DTF_HOST_DEVICE void operator()(int64_t pack) const {
    Pack<float, kPack> sum = load<kPack>(towers[0], pack);
    for (int tower = 1; tower < count; ++tower) sum += load<kPack>(towers[tower], pack);
    for (int i = 0; i < kPack; ++i) sum.at[i] *= share;
    store(mean, pack, sum);
  }
};
class MeanOfTowersKernel final : public Kernel {
 public:
  explicit MeanOfTowersKernel(const Operation& o)
      : packs_(o.outputs[0].elements() / kPack),
        towers_(static_cast<int>(o.inputs.size())),
        share_(numberOf(o, "share")) {
    if (towers_ < 1 || towers_ > runtime::kTowersMax || packs_ * kPack != o.outputs[0].elements())
      throw PluginError(DTF_PLUGIN_BAD_CONFIG, "Node '" + o.name + "': of 1 to " +
                                                   std::to_string(runtime::kTowersMax) +
                                                   " towers' lines.");
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

// How many elements of each part of the `lines` are infinite or no numbers.
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
      if (!isFinite(gradient[lines[i / kLine] * kLine + i % kLine])) ++count;
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
    int64_t sum = 0;
    for (int64_t part = team.rank(); part < parts; part += team.size()) sum += counts[part];
    sum = team.sum(sum);
    if (team.rank() == 0) *total = sum;
  }
};
class CheckStatisticsKernel final : public Kernel {
 public:
  explicit CheckStatisticsKernel(const Operation& o)
      : elements_(o.inputs[0].elements() * kLine), parts_((elements_ + kEach - 1) / kEach) {}
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

// Sums of squares of what is trained, by parts of an even size.
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
      if (kinds[pack / (kLine / kPack)] != 0) continue;
      const Pack<float, kPack> g = load<kPack>(gradient, pack);
      for (int i = 0; i < kPack; ++i)
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
    double sum = 0;
    for (int64_t part = team.rank(); part < parts; part += team.size()) sum += sums[part];
    sum = team.sum(sum);
    if (team.rank() == 0) *norm = static_cast<float>(std::sqrt(sum));
  }
};
class NormOfTrainedKernel final : public Kernel {
 public:
  explicit NormOfTrainedKernel(const Operation& o) : packs_(o.inputs[1].elements() / kPack) {}
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
    const float by = kinds[pack / (kLine / kPack)] == 0 ? *factor : 1.0f;
    Pack<float, kPack> g = load<kPack>(gradient, pack);
    for (int i = 0; i < kPack; ++i) g.at[i] *= by;
    store(scaled, pack, g);
  }
};
class ScaleTrainedKernel final : public Kernel {
 public:
  explicit ScaleTrainedKernel(const Operation& o) : packs_(o.inputs[2].elements() / kPack) {}
  void launch(Device& device, const Arguments& a) override {
    forElements(device, packs_, ScaleTrainedAt{a.in(0), a.in<uint8_t>(1), a.in(2), a.out(0)});
  }
  bool canOverwrite(int, int input) const override { return input == 2; }

 private:
  const int64_t packs_;
};

}  // namespace

void addUpdateKernels(KernelTable& table) {
  const auto add = [&table](std::string_view op, KernelFactory factory) {
    table[std::string(op)] = factory;
  };
  add(runtime::kApplyOptimizerOp, applyOptimizer);
  add(runtime::kMeanOfTowersOp, make<MeanOfTowersKernel>);
  add(runtime::kCheckStatisticsOp, make<CheckStatisticsKernel>);
  add(runtime::kNormOfTrainedOp, make<NormOfTrainedKernel>);
  add(runtime::kScaleTrainedOp, make<ScaleTrainedKernel>);
}

}  // namespace dtf::gpu
