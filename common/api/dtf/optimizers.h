#pragma once

// The optimizers of Graph::minimize(), with the names and settings of TensorFlow 1. A setting that
// is left out has the default that a job's file has: `dtf-launch --help-config
// train.optimizer.adam`.

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace dtf {
inline namespace v1 {

// One optimizer with its settings. Value type.
class Optimizer {
 public:
  // The text that dtf_graph_minimize() takes: "adam learning_rate=0.001".
  explicit Optimizer(std::string text) : text_(std::move(text)) {}
  const std::string& text() const { return text_; }

  // `settings`: "beta1=0.9 beta2=0.99".
  Optimizer& add(const std::string& settings) {
    text_ += " " + settings;
    return *this;
  }
  // The value is a number or a bool; add() takes any text.
  template <class Value, class = std::enable_if_t<std::is_arithmetic_v<Value>>>
  Optimizer& set(const std::string& name, Value value) {
    if constexpr (std::is_same_v<Value, bool>)
      return add(name + (value ? "=true" : "=false"));
    else if constexpr (std::is_integral_v<Value>)
      return add(name + "=" + std::to_string(value));
    else
      return add(name + "=" + numberText(static_cast<double>(value)));
  }
  // Without a value the default stays.
  template <class Value>
  Optimizer& set(const std::string& name, const std::optional<Value>& value) {
    return value ? set(name, *value) : *this;
  }

  // Returns the shortest text with the same bits.
  static std::string numberText(double value) {
    std::array<char, 64> text{};
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
  }

 private:
  std::string text_;
};

// A rate, or a schedule that starts with it. All steps are values of the global step.
struct LearningRate {
  LearningRate(double rate) : initial(rate) {}  // NOLINT: a number is a rate
  double initial;
  std::string schedule = {};  // its settings
  void addTo(Optimizer& optimizer) const {
    optimizer.set("learning_rate", initial);
    if (!schedule.empty()) optimizer.add(schedule);
  }
  // Linear up to the rate within `steps`; the schedule counts from there.
  LearningRate warmup(uint64_t steps) const {
    LearningRate longer = *this;
    const std::string words = "warmup_steps=" + std::to_string(steps);
    longer.schedule = schedule.empty() ? words : schedule + " " + words;
    return longer;
  }
};

// rate * decay_rate^(step / decay_steps), in whole decay_steps with `staircase`.
inline LearningRate exponentialDecay(double rate, uint64_t decay_steps, double decay_rate,
                                     bool staircase = false) {
  LearningRate made(rate);
  made.schedule = "schedule=exponential decay_steps=" + std::to_string(decay_steps) +
                  " decay_rate=" + Optimizer::numberText(decay_rate) +
                  " staircase=" + (staircase ? "true" : "false");
  return made;
}
// (rate - end)(1 - step / decay_steps)^power + end; with `cycle` again and again, longer.
inline LearningRate polynomialDecay(double rate, uint64_t decay_steps, double end = 0.0001,
                                    double power = 1, bool cycle = false) {
  LearningRate made(rate);
  made.schedule = "schedule=polynomial decay_steps=" + std::to_string(decay_steps) +
                  " end=" + Optimizer::numberText(end) + " power=" + Optimizer::numberText(power) +
                  " cycle=" + (cycle ? "true" : "false");
  return made;
}
// Half a wave from rate to alpha * rate.
inline LearningRate cosineDecay(double rate, uint64_t decay_steps, double alpha = 0) {
  LearningRate made(rate);
  made.schedule = "schedule=cosine decay_steps=" + std::to_string(decay_steps) +
                  " alpha=" + Optimizer::numberText(alpha);
  return made;
}

using Setting = std::optional<double>;
using Rate = std::optional<LearningRate>;
using Switch = std::optional<bool>;

inline Optimizer withRate(const char* name, const Rate& rate) {
  Optimizer made{name};
  if (rate) rate->addTo(made);
  return made;
}

struct GradientDescent {
  Rate learning_rate = {};
  Setting weight_decay = {};
  operator Optimizer() const {
    return withRate("gradient_descent", learning_rate).set("weight_decay", weight_decay);
  }
};
struct Momentum {
  Rate learning_rate = {};
  Setting momentum = {};
  Switch use_nesterov = {};
  Setting weight_decay = {};
  operator Optimizer() const {
    return withRate("momentum", learning_rate)
        .set("momentum", momentum)
        .set("use_nesterov", use_nesterov)
        .set("weight_decay", weight_decay);
  }
};
struct Adagrad {
  Rate learning_rate = {};
  Setting initial_accumulator_value = {}, weight_decay = {};
  operator Optimizer() const {
    return withRate("adagrad", learning_rate)
        .set("initial_accumulator_value", initial_accumulator_value)
        .set("weight_decay", weight_decay);
  }
};
struct Adadelta {
  Rate learning_rate = {};
  Setting rho = {}, epsilon = {}, weight_decay = {};
  operator Optimizer() const {
    return withRate("adadelta", learning_rate)
        .set("rho", rho)
        .set("epsilon", epsilon)
        .set("weight_decay", weight_decay);
  }
};
struct Adam {
  Rate learning_rate = {};
  Setting beta1 = {}, beta2 = {}, epsilon = {}, weight_decay = {};
  operator Optimizer() const {
    return withRate("adam", learning_rate)
        .set("beta1", beta1)
        .set("beta2", beta2)
        .set("epsilon", epsilon)
        .set("weight_decay", weight_decay);
  }
};
// `weight_decay` is required; each step subtracts it times the learning rate and the variable.
struct AdamW {
  Setting weight_decay = {};
  Rate learning_rate = {};
  Setting beta1 = {}, beta2 = {}, epsilon = {};
  operator Optimizer() const {
    return withRate("adamw", learning_rate)
        .set("weight_decay", weight_decay)
        .set("beta1", beta1)
        .set("beta2", beta2)
        .set("epsilon", epsilon);
  }
};
struct RmsProp {
  Rate learning_rate = {};
  Setting decay = {}, momentum = {}, epsilon = {};
  Switch centered = {};
  Setting weight_decay = {};
  operator Optimizer() const {
    return withRate("rmsprop", learning_rate)
        .set("decay", decay)
        .set("momentum", momentum)
        .set("epsilon", epsilon)
        .set("centered", centered)
        .set("weight_decay", weight_decay);
  }
};
struct Ftrl {
  Setting learning_rate = {};  // no schedule: the formula needs one rate
  Setting learning_rate_power = {}, initial_accumulator_value = {};
  Setting l1_regularization_strength = {}, l2_regularization_strength = {};
  Setting l2_shrinkage_regularization_strength = {};
  operator Optimizer() const {
    return Optimizer("ftrl")
        .set("learning_rate", learning_rate)
        .set("learning_rate_power", learning_rate_power)
        .set("initial_accumulator_value", initial_accumulator_value)
        .set("l1_regularization_strength", l1_regularization_strength)
        .set("l2_regularization_strength", l2_regularization_strength)
        .set("l2_shrinkage_regularization_strength", l2_shrinkage_regularization_strength);
  }
};
struct Lars {
  Rate learning_rate = {};
  Setting momentum = {}, weight_decay = {}, eeta = {}, epsilon = {};
  Switch use_nesterov = {};
  operator Optimizer() const {
    return withRate("lars", learning_rate)
        .set("momentum", momentum)
        .set("weight_decay", weight_decay)
        .set("eeta", eeta)
        .set("epsilon", epsilon)
        .set("use_nesterov", use_nesterov);
  }
};
struct Lamb {
  Rate learning_rate = {};
  Setting beta1 = {}, beta2 = {}, epsilon = {}, weight_decay = {};
  operator Optimizer() const {
    return withRate("lamb", learning_rate)
        .set("beta1", beta1)
        .set("beta2", beta2)
        .set("epsilon", epsilon)
        .set("weight_decay", weight_decay);
  }
};

}  // namespace v1
}  // namespace dtf
