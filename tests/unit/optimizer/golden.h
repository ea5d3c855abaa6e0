#pragma once

// The optimizers once more, an element at a time in double precision, from the papers and
// TensorFlow 1's documentation. The tests compare the kernels with them.

#include <cmath>
#include <cstddef>
#include <vector>

#include "common/base/random.h"
#include "common/optimizer/optimizer.h"

namespace dtf::optimizer::golden {

using Kind = cluster::OptimizerSpec::Kind;

inline std::vector<float> randomValues(uint64_t seed, uint64_t stream, size_t n) {
  Random random(seed, stream);
  std::vector<float> values(n);
  for (float& value : values) value = random.uniform(-1, 1);
  return values;
}

// Every kind, with settings that make each of its terms count.
inline std::vector<cluster::OptimizerSpec> allSpecs() {
  std::vector<cluster::OptimizerSpec> specs;
  for (int kind = 1; cluster::isOptimizerKind(kind); ++kind) {
    cluster::OptimizerSpec spec = cluster::defaultOptimizer(static_cast<Kind>(kind));
    spec.learning_rate = 0.05;
    spec.momentum = 0.7;
    if (spec.kind == Kind::kAdam || spec.kind == Kind::kAdamW) spec.epsilon = 0.1;
    if (spec.kind == Kind::kAdadelta) spec.epsilon = 0.01;
    if (spec.kind == Kind::kRmsProp) spec.epsilon = 0.02;
    if (spec.kind == Kind::kLamb || spec.kind == Kind::kAdamW) spec.weight_decay = 0.03;
    if (spec.kind == Kind::kLars) {
      spec.weight_decay = 0.2;
      spec.eeta = 0.4;
      spec.epsilon = 0.3;
    }
    if (spec.kind == Kind::kFtrl) {
      spec.l1_regularization_strength = 0.2;
      spec.l2_regularization_strength = 0.1;
      spec.l2_shrinkage_regularization_strength = 0.05;
    }
    specs.push_back(spec);
    const bool nesterov = spec.kind == Kind::kMomentum || spec.kind == Kind::kLars;
    if (!nesterov && spec.kind != Kind::kRmsProp) continue;
    (nesterov ? spec.use_nesterov : spec.centered) = true;
    specs.push_back(spec);
  }
  return specs;
}

// One variable with its slots.
class Reference {
 public:
  Reference(const cluster::OptimizerSpec& spec, const std::vector<float>& start)
      : w(start.begin(), start.end()), spec_(spec), a_(w.size()), b_(w.size()), c_(w.size()) {
    if (spec.kind == Kind::kAdagrad || spec.kind == Kind::kFtrl)
      a_.assign(w.size(), spec.initial_accumulator_value);
    if (spec.kind == Kind::kRmsProp) a_.assign(w.size(), 1.0);
  }

  void step(const std::vector<double>& g) {
    ++t_;
    ratio_ = trustRatio(g);
    for (size_t i = 0; i < w.size(); ++i) element(i, g[i], w[i]);
  }
  // Rows that are not named keep their values and slots.
  void stepRows(const std::vector<double>& g, const std::vector<bool>& named, size_t row_elements) {
    ++t_;
    for (size_t i = 0; i < w.size(); ++i)
      if (named[i / row_elements]) element(i, g[i], w[i]);
  }

  std::vector<double> w;

 private:
  double lambDirection(size_t i, double g) const {
    const double m = spec_.beta1 * a_[i] + (1 - spec_.beta1) * g;
    const double v = spec_.beta2 * b_[i] + (1 - spec_.beta2) * g * g;
    const double m_hat = m / (1 - std::pow(spec_.beta1, t_));
    const double v_hat = v / (1 - std::pow(spec_.beta2, t_));
    return m_hat / (std::sqrt(v_hat) + spec_.epsilon) + spec_.weight_decay * w[i];
  }
  double trustRatio(const std::vector<double>& g) const {
    double w2 = 0, u2 = 0;
    for (size_t i = 0; i < w.size(); ++i) {
      const double u = spec_.kind == Kind::kLamb ? lambDirection(i, g[i]) : g[i];
      w2 += w[i] * w[i];
      u2 += u * u;
    }
    if (w2 == 0 || u2 == 0) return 1;
    if (spec_.kind == Kind::kLamb) return std::sqrt(w2 / u2);
    return spec_.eeta * std::sqrt(w2) /
           (std::sqrt(u2) + spec_.weight_decay * std::sqrt(w2) + spec_.epsilon);
  }

  void element(size_t i, double g, double& x) {
    const cluster::OptimizerSpec& s = spec_;
    const double lr = s.learning_rate;
    const double lr_t = lr * std::sqrt(1 - std::pow(s.beta2, t_)) / (1 - std::pow(s.beta1, t_));
    switch (s.kind) {
      case Kind::kGradientDescent:
        x -= lr * g;
        break;
      case Kind::kMomentum:
        a_[i] = s.momentum * a_[i] + g;
        x -= s.use_nesterov ? lr * g + s.momentum * lr * a_[i] : lr * a_[i];
        break;
      case Kind::kAdagrad:
        a_[i] += g * g;
        x -= lr * g / std::sqrt(a_[i]);
        break;
      case Kind::kAdadelta: {
        a_[i] = s.rho * a_[i] + (1 - s.rho) * g * g;
        const double d = g * std::sqrt(b_[i] + s.epsilon) / std::sqrt(a_[i] + s.epsilon);
        b_[i] = s.rho * b_[i] + (1 - s.rho) * d * d;
        x -= lr * d;
        break;
      }
      case Kind::kAdam:
      case Kind::kAdamW:
        a_[i] = s.beta1 * a_[i] + (1 - s.beta1) * g;
        b_[i] = s.beta2 * b_[i] + (1 - s.beta2) * g * g;
        if (s.kind == Kind::kAdamW) x *= 1 - lr * s.weight_decay;
        x -= lr_t * a_[i] / (std::sqrt(b_[i]) + s.epsilon);
        break;
      case Kind::kRmsProp: {
        a_[i] = s.decay * a_[i] + (1 - s.decay) * g * g;
        c_[i] = s.decay * c_[i] + (1 - s.decay) * g;
        const double mean2 = s.centered ? c_[i] * c_[i] : 0;
        b_[i] = s.momentum * b_[i] + lr * g / std::sqrt(a_[i] - mean2 + s.epsilon);
        x -= b_[i];
        break;
      }
      case Kind::kFtrl: {
        const double p = s.learning_rate_power;
        const double n = a_[i] + g * g;
        b_[i] += g + 2 * s.l2_shrinkage_regularization_strength * x -
                 (std::pow(n, -p) - std::pow(a_[i], -p)) / lr * x;
        a_[i] = n;
        const double l1 = s.l1_regularization_strength;
        const double sign = b_[i] > 0 ? 1 : -1;
        const double q = std::pow(n, -p) / lr + 2 * s.l2_regularization_strength;
        x = std::fabs(b_[i]) > l1 ? (sign * l1 - b_[i]) / q : 0;
        break;
      }
      case Kind::kLars: {
        const double d = lr * ratio_ * (g + s.weight_decay * x);
        a_[i] = s.momentum * a_[i] + d;
        x -= s.use_nesterov ? d + s.momentum * a_[i] : a_[i];
        break;
      }
      case Kind::kLamb: {
        const double d = lambDirection(i, g);
        a_[i] = s.beta1 * a_[i] + (1 - s.beta1) * g;
        b_[i] = s.beta2 * b_[i] + (1 - s.beta2) * g * g;
        x -= lr * ratio_ * d;
        break;
      }
    }
  }

  cluster::OptimizerSpec spec_;
  std::vector<double> a_, b_, c_;
  double ratio_ = 1;
  int t_ = 0;
};

inline std::string nameOf(const cluster::OptimizerSpec& spec) {
  return std::string(cluster::optimizerName(spec.kind)) + (spec.use_nesterov ? " nesterov"
                                                           : spec.centered   ? " centered"
                                                                             : "");
}

}  // namespace dtf::optimizer::golden
