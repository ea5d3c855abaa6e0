// Updates of the variables that a device keeps: common/runtime/variable_ops.h. Compiled without
// contraction, for the same bits as on a ps.

#include <cmath>

#include "common/cluster/optimizer_spec.h"
#include "common/optimizer/optimizer_formulae.h"
#include "gpu/arena_packs.h"
#include "gpu/element_kernels.h"

namespace dtf::gpu {
namespace {

float numberOf(const Operation& o, std::string_view key) {
  return static_cast<float>(o.number(key));
}

// The numbers that change from update to update. Rules that have no decay of their own take the
// learning rate.
struct StepRates {
  float learning_rate, weight_decay;
  DTF_HOST_DEVICE operator float() const { return learning_rate; }
};

// A rule is a formula of optimizer_formulae.h with its constants; a variable has kSlots slots of
// its own.
struct GradientDescent {
  static constexpr int kSlots = 0;
  explicit GradientDescent(const Operation&) {}
  DTF_HOST_DEVICE float operator()(float w, float*, float g, float lr) const {
    return optimizer::gradientDescentOf(w, g, lr);
  }
};
struct Momentum {
  static constexpr int kSlots = 1;
  float momentum;
  bool use_nesterov;
  explicit Momentum(const Operation& o)
      : momentum(numberOf(o, "momentum")), use_nesterov(o.flag("use_nesterov")) {}
  DTF_HOST_DEVICE float operator()(float w, float* slots, float g, float lr) const {
    return use_nesterov ? optimizer::nesterovOf(w, slots[0], g, lr, momentum)
                        : optimizer::momentumOf(w, slots[0], g, lr, momentum);
  }
};
struct Adagrad {
  static constexpr int kSlots = 1;
  explicit Adagrad(const Operation&) {}
  DTF_HOST_DEVICE float operator()(float w, float* slots, float g, float lr) const {
    return optimizer::adagradOf(w, slots[0], g, lr);
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
    return optimizer::adadeltaOf(w, slots[0], slots[1], g, lr, rho, one_minus_rho, epsilon);
  }
};
optimizer::Moments momentsOf(const Operation& o) {
  return {numberOf(o, "one_minus_beta1"), numberOf(o, "one_minus_beta2"), numberOf(o, "epsilon")};
}
struct Adam {
  static constexpr int kSlots = 2;
  optimizer::Moments moments;
  explicit Adam(const Operation& o) : moments(momentsOf(o)) {}
  DTF_HOST_DEVICE float operator()(float w, float* slots, float g, float lr) const {
    return optimizer::adamOf(w, slots[0], slots[1], g, lr, moments);
  }
};
struct AdamW {
  static constexpr int kSlots = 2;
  optimizer::Moments moments;
  explicit AdamW(const Operation& o) : moments(momentsOf(o)) {}
  DTF_HOST_DEVICE float operator()(float w, float* slots, float g, StepRates at) const {
    return optimizer::adamWOf(w, slots[0], slots[1], g, at.learning_rate, moments, at.weight_decay);
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
    return optimizer::rmsPropOf(w, slots[0], slots[1], g, lr, one_minus_decay, momentum, epsilon);
  }
};
struct CenteredRmsProp {
  static constexpr int kSlots = 3;
  RmsProp plain;
  explicit CenteredRmsProp(const Operation& o) : plain(o) {}
  DTF_HOST_DEVICE float operator()(float w, float* slots, float g, float lr) const {
    return optimizer::centeredRmsPropOf(w, slots[0], slots[1], slots[2], g, lr,
                                        plain.one_minus_decay, plain.momentum, plain.epsilon);
  }
};
struct Ftrl {
  static constexpr int kSlots = 2;
  optimizer::FtrlConstants constants;
  explicit Ftrl(const Operation& o)
      : constants{0, numberOf(o, "l1"), numberOf(o, "l2_twice"),
                  numberOf(o, "l2_shrinkage_twice")} {}
  DTF_HOST_DEVICE float operator()(float w, float* slots, float g, float lr) const {
    optimizer::FtrlConstants c = constants;
    c.lr = lr;
    const float before = slots[0];
    slots[0] = before + g * g;
    return optimizer::ftrlOf(w, slots[1], g, std::sqrt(before), std::sqrt(slots[0]), c);
  }
};

// The arrays and constants common to all rules. All arrays but the first three have the arena's
// layout.
struct Arena {
  const StepRates* step;
  const uint8_t* kinds;  // by line; 0: trained, otherwise a statistic with rate rates[kind - 1]
  const float* rates;
  const float* gradient;
  const float* parameters;
  float* new_parameters;
  float* slots[3];
  float* averages;  // null if not kept
  float clip_by_value, l2, one_minus_average_decay;
};

// In packs, each within a line.
template <class Rule>
struct UpdateAt {
  Rule rule;
  Arena arena;

  DTF_HOST_DEVICE float gradientOf(float g, float w) const {
    if (arena.clip_by_value != 0) g = optimizer::clippedOf(g, arena.clip_by_value);
    if (arena.l2 != 0) g += arena.l2 * w;
    return g;
  }
  // Changes the slots, too.
  DTF_HOST_DEVICE ArenaPack train(int64_t pack, const ArenaPack& w, const ArenaPack& g) const {
    constexpr int kArrays = Rule::kSlots == 0 ? 1 : Rule::kSlots;
    ArenaPack slots[kArrays] = {};
    for (int s = 0; s < Rule::kSlots; ++s) slots[s] = load<kArenaPack>(arena.slots[s], pack);
    ArenaPack trained;
    for (int i = 0; i < kArenaPack; ++i) {
      float own[kArrays];
      for (int s = 0; s < kArrays; ++s) own[s] = slots[s].at[i];
      trained.at[i] = rule(w.at[i], own, gradientOf(g.at[i], w.at[i]), *arena.step);
      for (int s = 0; s < kArrays; ++s) slots[s].at[i] = own[s];
    }
    for (int s = 0; s < Rule::kSlots; ++s) store(arena.slots[s], pack, slots[s]);
    return trained;
  }
  DTF_HOST_DEVICE static ArenaPack moved(const ArenaPack& from, const ArenaPack& to, float rate) {
    ArenaPack result;
    for (int i = 0; i < kArenaPack; ++i)
      result.at[i] = optimizer::movedOf(from.at[i], to.at[i], rate);
    return result;
  }
  DTF_HOST_DEVICE void operator()(int64_t pack) const {
    const uint8_t kind = arena.kinds[pack / kPacksOfLine];
    const ArenaPack w = load<kArenaPack>(arena.parameters, pack);
    const ArenaPack g = load<kArenaPack>(arena.gradient, pack);
    const ArenaPack updated = kind == 0 ? train(pack, w, g) : moved(w, g, arena.rates[kind - 1]);
    store(arena.new_parameters, pack, updated);
    if (arena.averages == nullptr) return;
    // The average of a statistic is the statistic itself.
    store(arena.averages, pack,
          kind == 0 ? moved(load<kArenaPack>(arena.averages, pack), updated,
                            arena.one_minus_average_decay)
                    : updated);
  }
};

template <class Rule>
class UpdateKernel final : public Kernel {
 public:
  static constexpr int kParameters = 4;  // index among the inputs; slots and averages follow
  explicit UpdateKernel(const Operation& o)
      : rule_(o),
        packs_(o.outputs[0].elements() / kArenaPack),
        averages_(o.flag("averages")),
        clip_by_value_(numberOf(o, "clip_by_value")),
        l2_(numberOf(o, "l2")),
        one_minus_average_decay_(numberOf(o, "one_minus_average_decay")) {
    const size_t arrays = 1 + static_cast<size_t>(Rule::kSlots) + (averages_ ? 1 : 0);
    bool fits = o.inputs.size() == kParameters + arrays && o.outputs.size() == arrays &&
                o.inputs[0].elements() == 2 && o.inputs[1].elements() == packs_ / kPacksOfLine;
    for (const TensorSpec& output : o.outputs)
      fits = fits && output.elements() == packs_ * kArenaPack &&
             output.elements() % runtime::kArenaLine == 0;
    for (size_t i = kParameters - 1; fits && i < o.inputs.size(); ++i)
      fits = o.inputs[i].elements() == packs_ * kArenaPack;
    if (!fits)
      throw PluginError(DTF_PLUGIN_BAD_CONFIG,
                        "Node '" + o.name + "': not the arrays that its optimizer has.");
  }
  void launch(Device& device, const Arguments& a) override {
    Arena arena{reinterpret_cast<const StepRates*>(a.in(0)),
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

}  // namespace

void addUpdateKernels(KernelTable& table) {
  table[std::string(runtime::kApplyOptimizerOp)] = applyOptimizer;
}

}  // namespace dtf::gpu
