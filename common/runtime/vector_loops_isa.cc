// The loops of vector_loops.h, compiled once per instruction set.

#include "common/runtime/vector_loops_isa.h"

#include "common/runtime/vector.h"

namespace dtf::runtime::DTF_ISA {
namespace {

// Computes y[i] = f(inputs[i]...) by registers; the last, partial one through masks.
template <class F, class... Inputs>
DTF_INLINE void forEach(float* y, int64_t n, const F& f, const Inputs*... inputs) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, f(load(inputs + i)...));
  if (i < n) storePartial(y + i, f(loadPartial(inputs + i, n - i)...), n - i);
}

DTF_INLINE Floats sigmoidOf(Floats x) {
  return 1.0f / (1.0f + exp(-x));
}

void normalise(const uint8_t* x, float scale, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i]) * scale;
}
void scale(const float* x, float factor, float* y, int64_t n) {
  forEach(
      y, n, [factor](Floats v) { return v * factor; }, x);
}
// NaN stays NaN, here and in reluGrad, so that a broken training shows in its loss.
void relu(const float* x, float* y, int64_t n) {
  forEach(
      y, n, [](Floats v) { return v < 0.0f ? Floats{} : v; }, x);
}
void sigmoid(const float* x, float* y, int64_t n) {
  forEach(
      y, n, [](Floats v) { return sigmoidOf(v); }, x);
}
void tanhLoop(const float* x, float* y, int64_t n) {
  forEach(
      y, n, [](Floats v) { return tanh(v); }, x);
}
void add(const float* a, const float* b, float* y, int64_t n) {
  forEach(
      y, n, [](Floats u, Floats v) { return u + v; }, a, b);
}
void sub(const float* a, const float* b, float* y, int64_t n) {
  forEach(
      y, n, [](Floats u, Floats v) { return u - v; }, a, b);
}
void mul(const float* a, const float* b, float* y, int64_t n) {
  forEach(
      y, n, [](Floats u, Floats v) { return u * v; }, a, b);
}
void divLoop(const float* a, const float* b, float* y, int64_t n) {
  forEach(
      y, n, [](Floats u, Floats v) { return u / v; }, a, b);
}
// A NaN in either operand stays.
void maximumLoop(const float* a, const float* b, float* y, int64_t n) {
  const auto larger = [](Floats u, Floats v) {
    const Floats w = u < v ? v : u;
    return v == v ? w : v;  // NOLINT(misc-redundant-expression): a NaN is not
  };
  forEach(y, n, larger, a, b);
}
void minimumLoop(const float* a, const float* b, float* y, int64_t n) {
  const auto smaller = [](Floats u, Floats v) {
    const Floats w = v < u ? v : u;
    return v == v ? w : v;  // NOLINT(misc-redundant-expression): a NaN is not
  };
  forEach(y, n, smaller, a, b);
}
// Beyond the range of exp(): the square of its root, which overflows and underflows correctly.
void expLoop(const float* x, float* y, int64_t n) {
  const auto power = [](Floats v) {
    const Floats a = v < 0.0f ? -v : v;
    const Floats root = exp(a > 87.0f ? 0.5f * v : v);
    return a > 87.0f ? root * root : root;
  };
  forEach(y, n, power, x);
}
// Covers arguments that log() doesn't: subnormal numbers, 0, negative ones, infinity.
void logLoop(const float* x, float* y, int64_t n) {
  const auto logarithm = [](Floats v) {
    const auto tiny = v < 1.17549435e-38f;
    Floats l = log(tiny ? v * 33554432.0f : v) - (tiny ? splat(17.328679514f) : Floats{});  // 2^25
    l = v == 0.0f ? splat(-__builtin_inff()) : l;
    l = v < 0.0f ? splat(__builtin_nanf("")) : l;
    return v == __builtin_inff() ? v : l;
  };
  forEach(y, n, logarithm, x);
}
DTF_INLINE Floats rootOf(Floats v) {
#if defined(__AVX512F__)
  return _mm512_maskz_sqrt_ps(0xffff, v);
#elif defined(__AVX2__)
  return _mm256_sqrt_ps(v);
#else
  Floats root;
  for (int i = 0; i < kLanes; ++i) root[i] = __builtin_sqrtf(v[i]);
  return root;
#endif
}
void sqrtLoop(const float* x, float* y, int64_t n) {
  forEach(
      y, n, [](Floats v) { return rootOf(v); }, x);
}
void rsqrtLoop(const float* x, float* y, int64_t n) {
  forEach(
      y, n, [](Floats v) { return 1.0f / rootOf(v); }, x);
}
void squaredDifference(const float* a, const float* b, float* y, int64_t n) {
  forEach(
      y, n, [](Floats u, Floats v) { return (u - v) * (u - v); }, a, b);
}
void reluGrad(const float* dy, const float* y, float* dx, int64_t n) {
  forEach(
      dx, n, [](Floats d, Floats v) { return v <= 0.0f ? Floats{} : d; }, dy, y);
}
void sigmoidGrad(const float* dy, const float* y, float* dx, int64_t n) {
  forEach(
      dx, n, [](Floats d, Floats v) { return d * v * (1.0f - v); }, dy, y);
}
void tanhGrad(const float* dy, const float* y, float* dx, int64_t n) {
  forEach(
      dx, n, [](Floats d, Floats v) { return d * (1.0f - v * v); }, dy, y);
}
// NaN passes through all of these as well.
DTF_INLINE Floats clampTo(Floats v, float low, float high) {
  v = v < low ? splat(low) : v;
  return v > high ? splat(high) : v;
}
void relu6(const float* x, float* y, int64_t n) {
  forEach(
      y, n, [](Floats v) { return clampTo(v, 0, 6); }, x);
}
void relu6Grad(const float* dy, const float* y, float* dx, int64_t n) {
  forEach(
      dx, n,
      [](Floats d, Floats v) {
        const Floats open = v <= 0.0f ? Floats{} : d;
        return v >= 6.0f ? Floats{} : open;
      },
      dy, y);
}
void leakyRelu(const float* x, float alpha, float* y, int64_t n) {
  forEach(
      y, n, [alpha](Floats v) { return v > 0.0f ? v : v * alpha; }, x);
}
void leakyReluGrad(const float* dy, const float* x, float alpha, float* dx, int64_t n) {
  forEach(
      dx, n, [alpha](Floats d, Floats v) { return v > 0.0f ? d : d * alpha; }, dy, x);
}
void elu(const float* x, float* y, int64_t n) {
  forEach(
      y, n, [](Floats v) { return v > 0.0f ? v : exp(v) - 1.0f; }, x);
}
void eluGrad(const float* dy, const float* y, float* dx, int64_t n) {
  forEach(
      dx, n, [](Floats d, Floats v) { return v > 0.0f ? d : d * (v + 1.0f); }, dy, y);
}
void silu(const float* x, float* y, int64_t n) {
  forEach(
      y, n, [](Floats v) { return v * sigmoidOf(v); }, x);
}
void siluGrad(const float* dy, const float* x, float* dx, int64_t n) {
  const auto derivative = [](Floats d, Floats v) {
    const Floats s = sigmoidOf(v);
    return d * (s * (1.0f + v * (1.0f - s)));
  };
  forEach(dx, n, derivative, dy, x);
}
void softplus(const float* x, float* y, int64_t n) {
  const auto smooth = [](Floats v) {
    const Floats positive = v < 0.0f ? Floats{} : v;
    return positive + log1p(exp(v < 0.0f ? v : -v));
  };
  forEach(y, n, smooth, x);
}
void softplusGrad(const float* dy, const float* x, float* dx, int64_t n) {
  forEach(
      dx, n, [](Floats d, Floats v) { return d * sigmoidOf(v); }, dy, x);
}
void absLoop(const float* x, float* y, int64_t n) {
  forEach(
      y, n, [](Floats v) { return v < 0.0f ? -v : v; }, x);
}
void absGrad(const float* dy, const float* x, float* dx, int64_t n) {
  forEach(
      dx, n,
      [](Floats d, Floats v) {
        const Floats negative = v < 0.0f ? -d : d;
        return v == 0.0f ? Floats{} : negative;
      },
      dy, x);
}
void gelu(const float* x, float* y, int64_t n) {
  constexpr float kRootHalf = 0.707106781f;
  forEach(
      y, n, [](Floats v) { return 0.5f * v * (1.0f + erf(v * kRootHalf)); }, x);
}
void geluGrad(const float* dy, const float* x, float* dx, int64_t n) {
  constexpr float kRootHalf = 0.707106781f, kDensity = 0.398942280f;
  const auto derivative = [](Floats d, Floats v) {
    const Floats distribution = 0.5f * (1.0f + erf(v * kRootHalf));
    return d * (distribution + v * (kDensity * exp(-0.5f * v * v)));
  };
  forEach(dx, n, derivative, dy, x);
}
constexpr float kGeluRoot = 0.797884561f, kGeluCube = 0.044715f;  // the first is sqrt(2 / pi)
void geluApproximate(const float* x, float* y, int64_t n) {
  const auto value = [](Floats v) {
    return 0.5f * v * (1.0f + tanh(kGeluRoot * (v + kGeluCube * v * v * v)));
  };
  forEach(y, n, value, x);
}
void geluApproximateGrad(const float* dy, const float* x, float* dx, int64_t n) {
  const auto derivative = [](Floats d, Floats v) {
    const Floats t = tanh(kGeluRoot * (v + kGeluCube * v * v * v));
    const Floats slope = kGeluRoot * (1.0f + 3.0f * kGeluCube * v * v);
    return d * (0.5f * (1.0f + t) + 0.5f * v * (1.0f - t * t) * slope);
  };
  forEach(dx, n, derivative, dy, x);
}
void huber(const float* x, float delta, float* y, int64_t n) {
  const auto value = [delta](Floats v) {
    const Floats a = v < 0.0f ? -v : v;
    return a > delta ? delta * (a - 0.5f * delta) : 0.5f * v * v;
  };
  forEach(y, n, value, x);
}
void huberGrad(const float* dy, const float* x, float delta, float* dx, int64_t n) {
  forEach(
      dx, n, [delta](Floats d, Floats v) { return d * clampTo(v, -delta, delta); }, dy, x);
}
void sigmoidCrossEntropy(const float* logits, const float* targets, float* y, int64_t n) {
  const auto loss = [](Floats x, Floats z) {
    const Floats positive = x < 0.0f ? Floats{} : x;
    return positive - x * z + log1p(exp(x < 0.0f ? x : -x));
  };
  forEach(y, n, loss, logits, targets);
}
void sigmoidCrossEntropyGrad(const float* dy, const float* logits, const float* targets, float* dx,
                             int64_t n) {
  const auto gradient = [](Floats d, Floats x, Floats z) { return d * (sigmoidOf(x) - z); };
  forEach(dx, n, gradient, dy, logits, targets);
}

// Drops up to one register of elements from `i` on, by their random numbers.
DTF_INLINE void dropSome(const float* x, const DropoutMask& mask, float* y, int64_t i, int64_t n,
                         Numbers drawn) {
  const auto drop = [&](Floats v) { return drawn < mask.threshold ? Floats{} : v * mask.scale; };
  if (i + kLanes <= n) {
    store(y + i, drop(load(x + i)));
  } else if (i < n) {
    storePartial(y + i, drop(loadPartial(x + i, n - i)), n - i);
  }
}

void dropout(const float* x, const DropoutMask& mask, float* y, int64_t n) {
  constexpr int kBlocks = 16;  // for 64 elements, on every instruction set
  Numbers lane;
  for (int l = 0; l < kLanes; ++l) lane[l] = mask.first_block + static_cast<uint32_t>(l);
  for (int64_t group = 0; group < n; group += 4 * kBlocks) {
    for (int first = 0; first < kBlocks; first += kLanes) {
      Numbers c[4] = {lane + static_cast<uint32_t>(group / kDropoutBlockElements + first),
                      mask.counter[0] - Numbers{}, mask.counter[1] - Numbers{},
                      mask.counter[2] - Numbers{}};
      philox(c, mask.key[0], mask.key[1]);
      for (int j = 0; j < 4; ++j) dropSome(x, mask, y, group + j * kBlocks + first, n, c[j]);
    }
  }
}

double sumLoop(const float* x, int64_t n) {
  double lanes[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int l = 0; l < 8; ++l) lanes[l] += x[i + l];
  }
  for (int l = 0; i + l < n; ++l) lanes[l] += x[i + l];
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
         ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

void biasAdd(const float* x, const float* bias, float* y, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row) add(x + row * columns, bias, y + row * columns, columns);
}
// Several sums at a time: one alone would wait for its last addition.
void biasAddGrad(const float* dy, int64_t stride, float* db, int64_t rows, int64_t columns) {
  constexpr int64_t kAtOnce = 4;
  int64_t c = 0;
  for (; c + kAtOnce * kLanes <= columns; c += kAtOnce * kLanes) {
    Floats totals[kAtOnce] = {};
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < kAtOnce; ++i) totals[i] += load(dy + row * stride + c + i * kLanes);
    for (int64_t i = 0; i < kAtOnce; ++i) store(db + c + i * kLanes, totals[i]);
  }
  for (; c < columns; c += kLanes) {
    const int64_t n = columns - c < kLanes ? columns - c : kLanes;
    Floats total = {};
    for (int64_t row = 0; row < rows; ++row)
      total += n == kLanes ? load(dy + row * stride + c) : loadPartial(dy + row * stride + c, n);
    storePartial(db + c, total, n);
  }
}
void mulRows(const float* dy, const float* x, float* y, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row) {
    scale(x + row * columns, dy[row], y + row * columns, columns);
  }
}

// Reductions over a row use kReduceLanes lanes on every instruction set.
template <class F, class Combine>
DTF_INLINE void reduceRow(float (&lanes)[kReduceLanes], int64_t n, const F& f,
                          const Combine& combine) {
  int64_t i = 0;
  for (; i + kReduceLanes <= n; i += kReduceLanes) {
    for (int l = 0; l < kReduceLanes; ++l) lanes[l] = combine(lanes[l], f(i + l));
  }
  for (int l = 0; i + l < n; ++l) lanes[l] = combine(lanes[l], f(i + l));
}
DTF_INLINE float rowMax(const float* x, int64_t n) {
  float lanes[kReduceLanes];
  for (float& lane : lanes) lane = x[0];
  const auto greater = [](float a, float b) { return a < b ? b : a; };
  reduceRow(
      lanes, n, [x](int64_t i) { return x[i]; }, greater);
  return largest(lanes);
}
DTF_INLINE float rowSum(const float* x, int64_t n) {
  float lanes[kReduceLanes] = {};
  reduceRow(
      lanes, n, [x](int64_t i) { return x[i]; }, [](float a, float b) { return a + b; });
  return sum(lanes);
}

// y = exp(x - max); returns the sum.
DTF_INLINE float expRow(const float* x, float max, float* y, int64_t n) {
  forEach(
      y, n, [max](Floats v) { return exp(v - max); }, x);
  return rowSum(y, n);
}

void softmax(const float* x, float* y, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row, x += columns, y += columns) {
    const float total = expRow(x, rowMax(x, columns), y, columns);
    forEach(
        y, columns, [total](Floats v) { return v / total; }, y);
  }
}
void softmaxGrad(const float* dy, const float* y, float* dx, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row, dy += columns, y += columns, dx += columns) {
    float lanes[kReduceLanes] = {};
    reduceRow(
        lanes, columns, [dy, y](int64_t i) { return dy[i] * y[i]; },
        [](float a, float b) { return a + b; });
    const float dot = sum(lanes);
    forEach(
        dx, columns, [dot](Floats d, Floats v) { return (d - dot) * v; }, dy, y);
  }
}
void softmaxCrossEntropy(const float* logits, const int32_t* labels, float* loss, float* backprop,
                         int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row, logits += columns, backprop += columns) {
    const float max = rowMax(logits, columns);
    const float of_label = logits[labels[row]] - max;
    const float total = expRow(logits, max, backprop, columns);
    loss[row] = log(splat(total))[0] - of_label;
    forEach(
        backprop, columns, [total](Floats v) { return v / total; }, backprop);
    backprop[labels[row]] -= 1.0f;
  }
}

void targetsCrossEntropy(const float* logits, const float* targets, float* loss, float* backprop,
                         int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row) {
    const float max = rowMax(logits, columns);
    float lanes[kReduceLanes] = {};
    const auto plus = [](float a, float b) { return a + b; };
    reduceRow(
        lanes, columns, [=](int64_t i) { return targets[i] * (logits[i] - max); }, plus);
    const float of_targets = sum(lanes), weight = rowSum(targets, columns);
    const float total = expRow(logits, max, backprop, columns);
    loss[row] = weight * log(splat(total))[0] - of_targets;
    forEach(
        backprop, columns, [total](Floats v, Floats z) { return v / total - z; }, backprop,
        targets);
    logits += columns, targets += columns, backprop += columns;
  }
}

}  // namespace

const VectorLoops kVectorLoops = {
    .normalise = normalise,
    .scale = scale,
    .relu = relu,
    .sigmoid = sigmoid,
    .tanh = tanhLoop,
    .relu6 = relu6,
    .elu = elu,
    .gelu = gelu,
    .geluApproximate = geluApproximate,
    .silu = silu,
    .softplus = softplus,
    .abs = absLoop,
    .exp = expLoop,
    .log = logLoop,
    .sqrt = sqrtLoop,
    .rsqrt = rsqrtLoop,
    .add = add,
    .sub = sub,
    .mul = mul,
    .div = divLoop,
    .maximum = maximumLoop,
    .minimum = minimumLoop,
    .squaredDifference = squaredDifference,
    .reluGrad = reluGrad,
    .sigmoidGrad = sigmoidGrad,
    .tanhGrad = tanhGrad,
    .relu6Grad = relu6Grad,
    .eluGrad = eluGrad,
    .geluGrad = geluGrad,
    .geluApproximateGrad = geluApproximateGrad,
    .siluGrad = siluGrad,
    .softplusGrad = softplusGrad,
    .absGrad = absGrad,
    .sigmoidCrossEntropy = sigmoidCrossEntropy,
    .sigmoidCrossEntropyGrad = sigmoidCrossEntropyGrad,
    .leakyRelu = leakyRelu,
    .leakyReluGrad = leakyReluGrad,
    .huber = huber,
    .huberGrad = huberGrad,
    .dropout = dropout,
    .sum = sumLoop,
    .biasAdd = biasAdd,
    .biasAddGrad = biasAddGrad,
    .mulRows = mulRows,
    .softmax = softmax,
    .softmaxGrad = softmaxGrad,
    .softmaxCrossEntropy = softmaxCrossEntropy,
    .targetsCrossEntropy = targetsCrossEntropy,
};

}  // namespace dtf::runtime::DTF_ISA
