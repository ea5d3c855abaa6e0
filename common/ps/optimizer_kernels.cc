#include "common/ps/optimizer_kernels.h"

#include <cmath>

#include "common/base/check.h"
#include "common/ps/vector_kernel.h"

// Constants are copied into locals or passed by value: a store to a float array might change them,
// for all that the compiler knows.

namespace dtf::ps {

namespace {

using Kind = cluster::OptimizerSpec::Kind;

// What adam's formulae share.
struct Moments {
  float one_minus_beta1, one_minus_beta2, epsilon;
};

DTF_VECTOR_KERNEL void gradientDescent(const float* DTF_RESTRICT w, float* DTF_RESTRICT w_new,
                                       const float* DTF_RESTRICT g, uint64_t n, float lr) {
  for (uint64_t i = 0; i < n; ++i) w_new[i] = w[i] - lr * g[i];
}

DTF_VECTOR_KERNEL void momentum(const float* DTF_RESTRICT w, float* DTF_RESTRICT w_new,
                                float* DTF_RESTRICT accumulator, const float* DTF_RESTRICT g,
                                uint64_t n, float lr, float m) {
  for (uint64_t i = 0; i < n; ++i) {
    const float a = accumulator[i] * m + g[i];
    accumulator[i] = a;
    w_new[i] = w[i] - lr * a;
  }
}

DTF_VECTOR_KERNEL void nesterov(const float* DTF_RESTRICT w, float* DTF_RESTRICT w_new,
                                float* DTF_RESTRICT accumulator, const float* DTF_RESTRICT g,
                                uint64_t n, float lr, float m) {
  for (uint64_t i = 0; i < n; ++i) {
    const float a = accumulator[i] * m + g[i];
    accumulator[i] = a;
    w_new[i] = w[i] - (g[i] * lr + a * m * lr);
  }
}

DTF_VECTOR_KERNEL void adagrad(const float* DTF_RESTRICT w, float* DTF_RESTRICT w_new,
                               float* DTF_RESTRICT accumulator, const float* DTF_RESTRICT g,
                               uint64_t n, float lr) {
  for (uint64_t i = 0; i < n; ++i) {
    const float a = accumulator[i] + g[i] * g[i];
    accumulator[i] = a;
    w_new[i] = w[i] - lr * g[i] / std::sqrt(a);
  }
}

DTF_VECTOR_KERNEL void adadelta(const float* DTF_RESTRICT w, float* DTF_RESTRICT w_new,
                                float* DTF_RESTRICT accumulator, float* DTF_RESTRICT updates,
                                const float* DTF_RESTRICT g, uint64_t n, float lr, float rho,
                                float one_minus_rho, float epsilon) {
  for (uint64_t i = 0; i < n; ++i) {
    const float a = accumulator[i] * rho + g[i] * g[i] * one_minus_rho;
    const float update = std::sqrt(updates[i] + epsilon) / std::sqrt(a + epsilon) * g[i];
    accumulator[i] = a;
    updates[i] = updates[i] * rho + update * update * one_minus_rho;
    w_new[i] = w[i] - update * lr;
  }
}

DTF_VECTOR_KERNEL void adam(const float* DTF_RESTRICT w, float* DTF_RESTRICT w_new,
                            float* DTF_RESTRICT m, float* DTF_RESTRICT v,
                            const float* DTF_RESTRICT g, uint64_t n, float lr_t, Moments c) {
  for (uint64_t i = 0; i < n; ++i) {
    const float m_new = m[i] + (g[i] - m[i]) * c.one_minus_beta1;
    const float v_new = v[i] + (g[i] * g[i] - v[i]) * c.one_minus_beta2;
    m[i] = m_new;
    v[i] = v_new;
    w_new[i] = w[i] - lr_t * m_new / (std::sqrt(v_new) + c.epsilon);
  }
}

DTF_VECTOR_KERNEL void adamW(const float* DTF_RESTRICT w, float* DTF_RESTRICT w_new,
                             float* DTF_RESTRICT m, float* DTF_RESTRICT v,
                             const float* DTF_RESTRICT g, uint64_t n, float lr_t, Moments c,
                             float weight_decay) {
  for (uint64_t i = 0; i < n; ++i) {
    const float m_new = m[i] + (g[i] - m[i]) * c.one_minus_beta1;
    const float v_new = v[i] + (g[i] * g[i] - v[i]) * c.one_minus_beta2;
    m[i] = m_new;
    v[i] = v_new;
    w_new[i] = w[i] - weight_decay * w[i] - lr_t * m_new / (std::sqrt(v_new) + c.epsilon);
  }
}

DTF_VECTOR_KERNEL void rmsProp(const float* DTF_RESTRICT w, float* DTF_RESTRICT w_new,
                               float* DTF_RESTRICT ms, float* DTF_RESTRICT mom,
                               const float* DTF_RESTRICT g, uint64_t n, float lr,
                               float one_minus_decay, float m, float epsilon) {
  for (uint64_t i = 0; i < n; ++i) {
    const float ms_new = ms[i] + (g[i] * g[i] - ms[i]) * one_minus_decay;
    const float mom_new = mom[i] * m + lr * g[i] / std::sqrt(ms_new + epsilon);
    ms[i] = ms_new;
    mom[i] = mom_new;
    w_new[i] = w[i] - mom_new;
  }
}

DTF_VECTOR_KERNEL void centeredRmsProp(const float* DTF_RESTRICT w, float* DTF_RESTRICT w_new,
                                       float* DTF_RESTRICT ms, float* DTF_RESTRICT mg,
                                       float* DTF_RESTRICT mom, const float* DTF_RESTRICT g,
                                       uint64_t n, float lr, float one_minus_decay, float m,
                                       float epsilon) {
  for (uint64_t i = 0; i < n; ++i) {
    const float ms_new = ms[i] + (g[i] * g[i] - ms[i]) * one_minus_decay;
    const float mg_new = mg[i] + (g[i] - mg[i]) * one_minus_decay;
    const float variance = ms_new - mg_new * mg_new;
    // Rounding can make it negative, and TensorFlow's root of it then a NaN.
    const float positive = variance > 0 ? variance : 0;
    const float mom_new = mom[i] * m + lr * g[i] / std::sqrt(positive + epsilon);
    ms[i] = ms_new;
    mg[i] = mg_new;
    mom[i] = mom_new;
    w_new[i] = w[i] - mom_new;
  }
}

struct FtrlConstants {
  float lr, l1, l2_twice, l2_shrinkage_twice;
};

// The new parameter, from sqrt(n) or n^-power before and after. `linear` is updated. Without a
// branch: the vectoriser must manage with SSE2, which can't leave single lanes out.
inline float ftrlElement(float w, float& linear, float g, float root, float root_new,
                         const FtrlConstants& c) {
  const float with_shrinkage = g + c.l2_shrinkage_twice * w;
  const float z = linear + (with_shrinkage - (root_new - root) / c.lr * w);
  const float beyond = std::fabs(z) - c.l1;
  const float shrunk = 0.0f > beyond ? 0.0f : beyond;  // a NaN stays one
  linear = z;
  // Adding 0 turns -0 into 0.
  return std::copysign(shrunk, -z) / (root_new / c.lr + c.l2_twice) + 0.0f;
}

DTF_VECTOR_KERNEL void ftrl(const float* DTF_RESTRICT w, float* DTF_RESTRICT w_new,
                            float* DTF_RESTRICT accumulator, float* DTF_RESTRICT linear,
                            const float* DTF_RESTRICT g, uint64_t n, FtrlConstants c) {
  for (uint64_t i = 0; i < n; ++i) {
    const float a = accumulator[i] + g[i] * g[i];
    w_new[i] = ftrlElement(w[i], linear[i], g[i], std::sqrt(accumulator[i]), std::sqrt(a), c);
    accumulator[i] = a;
  }
}

// pow() is the C library's: neither vectorised, nor the same bits with every library.
void ftrlAnyPower(const KernelArrays& x, const FtrlConstants& c, float power) {
  for (uint64_t i = 0; i < x.n; ++i) {
    const float before = x.slots[0][i];
    const float a = before + x.g[i] * x.g[i];
    x.w_new[i] = ftrlElement(x.w[i], x.slots[1][i], x.g[i], std::pow(before, -power),
                             std::pow(a, -power), c);
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
    const float m_new = m[i] + (g[i] - m[i]) * c.moments.one_minus_beta1;
    const float v_new = v[i] + (g[i] * g[i] - v[i]) * c.moments.one_minus_beta2;
    m[i] = m_new;
    v[i] = v_new;
    w_new[i] = w[i] - rate * lambElement(w[i], m_new, v_new, c);
  }
}

DTF_VECTOR_KERNEL void lambOnly(const float* DTF_RESTRICT w, const float* DTF_RESTRICT m,
                                const float* DTF_RESTRICT v, const float* DTF_RESTRICT g,
                                float* DTF_RESTRICT direction, uint64_t n, LambConstants c) {
  for (uint64_t i = 0; i < n; ++i) {
    const float m_new = m[i] + (g[i] - m[i]) * c.moments.one_minus_beta1;
    const float v_new = v[i] + (g[i] * g[i] - v[i]) * c.moments.one_minus_beta2;
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
  vectorised<ftrl>(x.w, x.w_new, x.slots[0], x.slots[1], x.g, x.n, constants);
}

void applyLars(const UpdateConstants& c, const KernelArrays& x) {
  const float rate = c.learning_rate * c.trust_ratio;
  if (c.use_nesterov) {
    return vectorised<larsNesterov>(x.w, x.w_new, x.slots[0], x.g, x.n, rate, c.momentum,
                                    c.weight_decay);
  }
  vectorised<lars>(x.w, x.w_new, x.slots[0], x.g, x.n, rate, c.momentum, c.weight_decay);
}

void applyRmsProp(const UpdateConstants& c, const KernelArrays& x) {
  const float one_minus_decay = c.one_minus_rho;
  if (c.centered) {
    return vectorised<centeredRmsProp>(x.w, x.w_new, x.slots[0], x.slots[1], x.slots[2], x.g, x.n,
                                       c.learning_rate, one_minus_decay, c.momentum, c.epsilon);
  }
  vectorised<rmsProp>(x.w, x.w_new, x.slots[0], x.slots[1], x.g, x.n, c.learning_rate,
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
      return vectorised<gradientDescent>(x.w, x.w_new, x.g, x.n, lr);
    case Kind::kMomentum:
      if (c.use_nesterov) {
        return vectorised<nesterov>(x.w, x.w_new, x.slots[0], x.g, x.n, lr, c.momentum);
      }
      return vectorised<momentum>(x.w, x.w_new, x.slots[0], x.g, x.n, lr, c.momentum);
    case Kind::kAdagrad:
      return vectorised<adagrad>(x.w, x.w_new, x.slots[0], x.g, x.n, lr);
    case Kind::kAdadelta:
      return vectorised<adadelta>(x.w, x.w_new, x.slots[0], x.slots[1], x.g, x.n, lr, c.rho,
                                  c.one_minus_rho, c.epsilon);
    case Kind::kAdam:
      return vectorised<adam>(x.w, x.w_new, x.slots[0], x.slots[1], x.g, x.n, lr, momentsOf(c));
    case Kind::kAdamW:
      return vectorised<adamW>(x.w, x.w_new, x.slots[0], x.slots[1], x.g, x.n, lr, momentsOf(c),
                               c.weight_decay);
    case Kind::kRmsProp:
      return applyRmsProp(c, x);
    case Kind::kFtrl:
      return applyFtrl(c, x);
    case Kind::kLars:
      return applyLars(c, x);
    case Kind::kLamb:
      return vectorised<lamb>(x.w, x.w_new, x.slots[0], x.slots[1], x.g, x.n, lr * c.trust_ratio,
                              lambConstants(c));
  }
  DTF_CHECK_MSG(false, std::to_string(static_cast<int>(c.kind)));
}

void lambDirection(const UpdateConstants& c, const KernelArrays& x, float* direction) {
  vectorised<lambOnly>(x.w, x.slots[0], x.slots[1], x.g, direction, x.n, lambConstants(c));
}

}  // namespace dtf::ps
