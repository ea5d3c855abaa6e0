#pragma once

// TensorFlow 1's optimizers for one element each (see optimizer.h), shared by the loops of a ps and
// the kernels of a device. Each returns the new parameter of `w` with the gradient `g`, and updates
// its slots. Every operation is IEEE exact, so without contraction (-ffp-contract=off,
// --fmad=false) they have the same bits everywhere.

#include <cmath>

// nvcc compiles them for both; the host's compiler must inline them into loops for each instruction
// set.
#if defined(__CUDACC__)
#define DTF_FORMULA __host__ __device__ inline
#else
#define DTF_FORMULA inline __attribute__((always_inline))
#endif

namespace dtf::optimizer {

// The constants of all adam formulae.
struct Moments {
  float one_minus_beta1, one_minus_beta2, epsilon;
};

struct FtrlConstants {
  float lr, l1, l2_twice, l2_shrinkage_twice;
};

DTF_FORMULA float gradientDescentOf(float w, float g, float lr) {
  return w - lr * g;
}

DTF_FORMULA float momentumOf(float w, float& accumulator, float g, float lr, float m) {
  const float a = accumulator * m + g;
  accumulator = a;
  return w - lr * a;
}

DTF_FORMULA float nesterovOf(float w, float& accumulator, float g, float lr, float m) {
  const float a = accumulator * m + g;
  accumulator = a;
  return w - (g * lr + a * m * lr);
}

DTF_FORMULA float adagradOf(float w, float& accumulator, float g, float lr) {
  const float a = accumulator + g * g;
  accumulator = a;
  return w - lr * g / std::sqrt(a);
}

DTF_FORMULA float adadeltaOf(float w, float& accumulator, float& updates, float g, float lr,
                             float rho, float one_minus_rho, float epsilon) {
  const float a = accumulator * rho + g * g * one_minus_rho;
  const float update = std::sqrt(updates + epsilon) / std::sqrt(a + epsilon) * g;
  accumulator = a;
  updates = updates * rho + update * update * one_minus_rho;
  return w - update * lr;
}

// Moves the two moments.
DTF_FORMULA void moveMoments(float& m, float& v, float g, const Moments& c) {
  m = m + (g - m) * c.one_minus_beta1;
  v = v + (g * g - v) * c.one_minus_beta2;
}

DTF_FORMULA float adamOf(float w, float& m, float& v, float g, float lr_t, const Moments& c) {
  moveMoments(m, v, g, c);
  return w - lr_t * m / (std::sqrt(v) + c.epsilon);
}

DTF_FORMULA float adamWOf(float w, float& m, float& v, float g, float lr_t, const Moments& c,
                          float weight_decay) {
  moveMoments(m, v, g, c);
  return w - weight_decay * w - lr_t * m / (std::sqrt(v) + c.epsilon);
}

DTF_FORMULA float rmsPropOf(float w, float& ms, float& mom, float g, float lr,
                            float one_minus_decay, float m, float epsilon) {
  ms = ms + (g * g - ms) * one_minus_decay;
  mom = mom * m + lr * g / std::sqrt(ms + epsilon);
  return w - mom;
}

DTF_FORMULA float centeredRmsPropOf(float w, float& ms, float& mg, float& mom, float g, float lr,
                                    float one_minus_decay, float m, float epsilon) {
  ms = ms + (g * g - ms) * one_minus_decay;
  mg = mg + (g - mg) * one_minus_decay;
  const float variance = ms - mg * mg;
  // Rounding can make it negative, and TensorFlow's root of it then a NaN.
  const float positive = variance > 0 ? variance : 0;
  mom = mom * m + lr * g / std::sqrt(positive + epsilon);
  return w - mom;
}

// `root` and `root_new` are sqrt(n) or n^-power before and after; `linear` is updated. There is no
// branch: the vectoriser must manage with SSE2, which can't leave single lanes out.
DTF_FORMULA float ftrlOf(float w, float& linear, float g, float root, float root_new,
                         const FtrlConstants& c) {
  const float with_shrinkage = g + c.l2_shrinkage_twice * w;
  const float z = linear + (with_shrinkage - (root_new - root) / c.lr * w);
  const float beyond = std::fabs(z) - c.l1;
  const float shrunk = 0.0f > beyond ? 0.0f : beyond;  // a NaN stays one
  linear = z;
  // Adding 0 turns -0 into 0.
  return std::copysign(shrunk, -z) / (root_new / c.lr + c.l2_twice) + 0.0f;
}

DTF_FORMULA float clippedOf(float g, float bound) {
  const float low = g < -bound ? -bound : g;
  return low > bound ? bound : low;
}

// Moves an average towards a measured value.
DTF_FORMULA float movedOf(float average, float measured, float one_minus_decay) {
  return average - (average - measured) * one_minus_decay;
}

}  // namespace dtf::optimizer
