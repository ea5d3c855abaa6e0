#include "common/optimizer/optimizer_kernels.h"

#include <cmath>

#include "common/arena/vector_kernel.h"
#include "common/base/check.h"
#include "common/optimizer/optimizer_formulae.h"

// Constants are copied into locals or passed by value: a store to a float array might change them,
// for all that the compiler knows.

namespace dtf::optimizer {

namespace {

using Kind = cluster::OptimizerSpec::Kind;

DTF_VECTOR_KERNEL void gradientDescent(const float* DTF_RESTRICT w, float* DTF_RESTRICT w_new,
                                       const float* DTF_RESTRICT g, uint64_t n, float lr) {
  for (uint64_t i = 0; i < n; ++i) w_new[i] = gradientDescentOf(w[i], g[i], lr);
}

DTF_VECTOR_KERNEL void momentum(const float* DTF_RESTRICT w, float* DTF_RESTRICT w_new,
                                float* DTF_RESTRICT accumulator, const float* DTF_RESTRICT g,
                                uint64_t n, float lr, float m) {
  for (uint64_t i = 0; i < n; ++i) w_new[i] = momentumOf(w[i], accumulator[i], g[i], lr, m);
}

DTF_VECTOR_KERNEL void nesterov(const float* DTF_RESTRICT w, float* DTF_RESTRICT w_new,
                                float* DTF_RESTRICT accumulator, const float* DTF_RESTRICT g,
                                uint64_t n, float lr, float m) {
  for (uint64_t i = 0; i < n; ++i) w_new[i] = nesterovOf(w[i], accumulator[i], g[i], lr, m);
}

DTF_VECTOR_KERNEL void adagrad(const float* DTF_RESTRICT w, float* DTF_RESTRICT w_new,
                               float* DTF_RESTRICT accumulator, const float* DTF_RESTRICT g,
                               uint64_t n, float lr) {
  for (uint64_t i = 0; i < n; ++i) w_new[i] = adagradOf(w[i], accumulator[i], g[i], lr);
}

DTF_VECTOR_KERNEL void adadelta(const float* DTF_RESTRICT w, float* DTF_RESTRICT w_new,
                                float* DTF_RESTRICT accumulator, float* DTF_RESTRICT updates,
                                const float* DTF_RESTRICT g, uint64_t n, float lr, float rho,
                                float one_minus_rho, float epsilon) {
  for (uint64_t i = 0; i < n; ++i)
    w_new[i] = adadeltaOf(w[i], accumulator[i], updates[i], g[i], lr, rho, one_minus_rho, epsilon);
}

DTF_VECTOR_KERNEL void adam(const float* DTF_RESTRICT w, float* DTF_RESTRICT w_new,
                            float* DTF_RESTRICT m, float* DTF_RESTRICT v,
                            const float* DTF_RESTRICT g, uint64_t n, float lr_t, Moments c) {
  for (uint64_t i = 0; i < n; ++i) w_new[i] = adamOf(w[i], m[i], v[i], g[i], lr_t, c);
}

DTF_VECTOR_KERNEL void adamW(const float* DTF_RESTRICT w, float* DTF_RESTRICT w_new,
                             float* DTF_RESTRICT m, float* DTF_RESTRICT v,
                             const float* DTF_RESTRICT g, uint64_t n, float lr_t, Moments c,
                             float weight_decay) {
  for (uint64_t i = 0; i < n; ++i)
    w_new[i] = adamWOf(w[i], m[i], v[i], g[i], lr_t, c, weight_decay);
}

DTF_VECTOR_KERNEL void rmsProp(const float* DTF_RESTRICT w, float* DTF_RESTRICT w_new,
                               float* DTF_RESTRICT ms, float* DTF_RESTRICT mom,
                               const float* DTF_RESTRICT g, uint64_t n, float lr,
                               float one_minus_decay, float m, float epsilon) {
  for (uint64_t i = 0; i < n; ++i)
    w_new[i] = rmsPropOf(w[i], ms[i], mom[i], g[i], lr, one_minus_decay, m, epsilon);
}

DTF_VECTOR_KERNEL void centeredRmsProp(const float* DTF_RESTRICT w, float* DTF_RESTRICT w_new,
                                       float* DTF_RESTRICT ms, float* DTF_RESTRICT mg,
                                       float* DTF_RESTRICT mom, const float* DTF_RESTRICT g,
                                       uint64_t n, float lr, float one_minus_decay, float m,
                                       float epsilon) {
  for (uint64_t i = 0; i < n; ++i)
    w_new[i] = centeredRmsPropOf(w[i], ms[i], mg[i], mom[i], g[i], lr, one_minus_decay, m, epsilon);
}

DTF_VECTOR_KERNEL void ftrl(const float* DTF_RESTRICT w, float* DTF_RESTRICT w_new,
                            float* DTF_RESTRICT accumulator, float* DTF_RESTRICT linear,
                            const float* DTF_RESTRICT g, uint64_t n, FtrlConstants c) {
  for (uint64_t i = 0; i < n; ++i) {
    const float a = accumulator[i] + g[i] * g[i];
    w_new[i] = ftrlOf(w[i], linear[i], g[i], std::sqrt(accumulator[i]), std::sqrt(a), c);
    accumulator[i] = a;
  }
}

// pow() is the C library's: neither vectorised, nor the same bits with every library.
void ftrlAnyPower(const KernelArrays& x, const FtrlConstants& c, float power) {
  for (uint64_t i = 0; i < x.n; ++i) {
    const float before = x.slots[0][i];
    const float a = before + x.g[i] * x.g[i];
    x.w_new[i] =
        ftrlOf(x.w[i], x.slots[1][i], x.g[i], std::pow(before, -power), std::pow(a, -power), c);
    x.slots[0][i] = a;
  }
}

DTF_VECTOR_KERNEL void lars(const float* DTF_RESTRICT w, float* DTF_RESTRICT w_new,
                            float* DTF_RESTRICT accumulator, const float* DTF_RESTRICT g,
                            uint64_t n, float rate, float m, float weight_decay) {
  for (uint64_t i = 0; i < n; ++i) {
    const float a = accumulator[i] * m + rate * (g[i] + weight_decay * w[i]);
    accumulator[i] = a;
    w_new[i] = w[i] - a;
  }
}

DTF_VECTOR_KERNEL void larsNesterov(const float* DTF_RESTRICT w, float* DTF_RESTRICT w_new,
                                    float* DTF_RESTRICT accumulator, const float* DTF_RESTRICT g,
                                    uint64_t n, float rate, float m, float weight_decay) {
  for (uint64_t i = 0; i < n; ++i) {
    const float step = rate * (g[i] + weight_decay * w[i]);
    const float a = accumulator[i] * m + step;
    accumulator[i] = a;
    w_new[i] = w[i] - (step + a * m);
  }
}

struct LambConstants {
  Moments moments;
  float correction1, correction2, weight_decay;
};

inline float lambElement(float w, float m, float v, const LambConstants& c) {
  const float m_hat = m / c.correction1;
  const float v_hat = v / c.correction2;
  return m_hat / (std::sqrt(v_hat) + c.moments.epsilon) + c.weight_decay * w;
}

DTF_VECTOR_KERNEL void lamb(const float* DTF_RESTRICT w, float* DTF_RESTRICT w_new,
                            float* DTF_RESTRICT m, float* DTF_RESTRICT v,
                            const float* DTF_RESTRICT g, uint64_t n, float rate, LambConstants c) {
  for (uint64_t i = 0; i < n; ++i) {
    moveMoments(m[i], v[i], g[i], c.moments);
    w_new[i] = w[i] - rate * lambElement(w[i], m[i], v[i], c);
  }
}

DTF_VECTOR_KERNEL void lambOnly(const float* DTF_RESTRICT w, const float* DTF_RESTRICT m,
                                const float* DTF_RESTRICT v, const float* DTF_RESTRICT g,
                                float* DTF_RESTRICT direction, uint64_t n, LambConstants c) {
  for (uint64_t i = 0; i < n; ++i) {
    float m_new = m[i], v_new = v[i];
    moveMoments(m_new, v_new, g[i], c.moments);
    direction[i] = lambElement(w[i], m_new, v_new, c);
  }
}

Moments momentsOf(const UpdateConstants& c) {
  return {c.one_minus_beta1, c.one_minus_beta2, c.epsilon};
}

LambConstants lambConstants(const UpdateConstants& c) {
  return {momentsOf(c), c.correction1, c.correction2, c.weight_decay};
}

void applyFtrl(const UpdateConstants& c, const KernelArrays& x) {
  const FtrlConstants constants{c.learning_rate, c.l1, c.l2_twice, c.l2_shrinkage_twice};
  if (c.learning_rate_power != -0.5f) return ftrlAnyPower(x, constants, c.learning_rate_power);
  arena::vectorised<ftrl>(x.w, x.w_new, x.slots[0], x.slots[1], x.g, x.n, constants);
}

void applyLars(const UpdateConstants& c, const KernelArrays& x) {
  const float rate = c.learning_rate * c.trust_ratio;
  if (c.use_nesterov) {
    return arena::vectorised<larsNesterov>(x.w, x.w_new, x.slots[0], x.g, x.n, rate, c.momentum,
                                           c.weight_decay);
  }
  arena::vectorised<lars>(x.w, x.w_new, x.slots[0], x.g, x.n, rate, c.momentum, c.weight_decay);
}

void applyRmsProp(const UpdateConstants& c, const KernelArrays& x) {
  const float one_minus_decay = c.one_minus_rho;
  if (c.centered) {
    return arena::vectorised<centeredRmsProp>(x.w, x.w_new, x.slots[0], x.slots[1], x.slots[2], x.g,
                                              x.n, c.learning_rate, one_minus_decay, c.momentum,
                                              c.epsilon);
  }
  arena::vectorised<rmsProp>(x.w, x.w_new, x.slots[0], x.slots[1], x.g, x.n, c.learning_rate,
                             one_minus_decay, c.momentum, c.epsilon);
}

}  // namespace

KernelArrays kernelArrays(const UpdateArrays& arrays, const float* gradient, uint64_t begin,
                          uint64_t n) {
  KernelArrays x{arrays.old_parameters + begin, arrays.new_parameters + begin, {}, gradient, n};
  for (size_t i = 0; i < x.slots.size(); ++i) {
    if (arrays.slots[i] != nullptr) x.slots[i] = arrays.slots[i] + begin;
  }
  return x;
}

void applyKernel(const UpdateConstants& c, const KernelArrays& x) {
  const float lr = c.learning_rate;
  switch (c.kind) {
    case Kind::kGradientDescent:
      return arena::vectorised<gradientDescent>(x.w, x.w_new, x.g, x.n, lr);
    case Kind::kMomentum:
      if (c.use_nesterov) {
        return arena::vectorised<nesterov>(x.w, x.w_new, x.slots[0], x.g, x.n, lr, c.momentum);
      }
      return arena::vectorised<momentum>(x.w, x.w_new, x.slots[0], x.g, x.n, lr, c.momentum);
    case Kind::kAdagrad:
      return arena::vectorised<adagrad>(x.w, x.w_new, x.slots[0], x.g, x.n, lr);
    case Kind::kAdadelta:
      return arena::vectorised<adadelta>(x.w, x.w_new, x.slots[0], x.slots[1], x.g, x.n, lr, c.rho,
                                         c.one_minus_rho, c.epsilon);
    case Kind::kAdam:
      return arena::vectorised<adam>(x.w, x.w_new, x.slots[0], x.slots[1], x.g, x.n, lr,
                                     momentsOf(c));
    case Kind::kAdamW:
      return arena::vectorised<adamW>(x.w, x.w_new, x.slots[0], x.slots[1], x.g, x.n, lr,
                                      momentsOf(c), c.weight_decay);
    case Kind::kRmsProp:
      return applyRmsProp(c, x);
    case Kind::kFtrl:
      return applyFtrl(c, x);
    case Kind::kLars:
      return applyLars(c, x);
    case Kind::kLamb:
      return arena::vectorised<lamb>(x.w, x.w_new, x.slots[0], x.slots[1], x.g, x.n,
                                     lr * c.trust_ratio, lambConstants(c));
  }
  DTF_CHECK_MSG(false, std::to_string(static_cast<int>(c.kind)));
}

void lambDirection(const UpdateConstants& c, const KernelArrays& x, float* direction) {
  arena::vectorised<lambOnly>(x.w, x.slots[0], x.slots[1], x.g, direction, x.n, lambConstants(c));
}

}  // namespace dtf::optimizer
