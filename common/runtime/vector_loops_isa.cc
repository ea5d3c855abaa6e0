// The loops of vector_loops.h, compiled once per instruction set.

#include "common/runtime/vector_loops_isa.h"

#include "common/runtime/vector.h"

namespace dtf::runtime::DTF_ISA {
namespace {

// y[i] = f(inputs[i]...) by registers; the last, partial one through masks.
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

// Up to one register of elements from `i` on, each with the number that it draws.
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
  constexpr int kBlocks = 16;  // that belong to 64 elements, on every instruction set
  Numbers lane;
  for (int l = 0; l < kLanes; ++l) lane[l] = static_cast<uint32_t>(l);
  for (int64_t group = 0; group < n; group += 4 * kBlocks) {
    for (int first = 0; first < kBlocks; first += kLanes) {
      Numbers c[4] = {lane + static_cast<uint32_t>(group / 4 + first), mask.counter[0] - Numbers{},
                      mask.counter[1] - Numbers{}, mask.counter[2] - Numbers{}};
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
void biasAddGrad(const float* dy, float* db, int64_t rows, int64_t columns) {
  for (int64_t c = 0; c < columns; c += kLanes) {
    const int64_t n = columns - c < kLanes ? columns - c : kLanes;
    Floats total = {};
    if (n == kLanes) {
      for (int64_t row = 0; row < rows; ++row) total += load(dy + row * columns + c);
    } else {
      for (int64_t row = 0; row < rows; ++row) total += loadPartial(dy + row * columns + c, n);
    }
    storePartial(db + c, total, n);
  }
}
void mulRows(const float* dy, const float* x, float* y, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row) {
    scale(x + row * columns, dy[row], y + row * columns, columns);
  }
}

// The reductions over a row run in kReduceLanes lanes on every instruction set.
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

}  // namespace

const VectorLoops kVectorLoops = {
    .normalise = normalise,
    .scale = scale,
    .relu = relu,
    .sigmoid = sigmoid,
    .tanh = tanhLoop,
    .add = add,
    .sub = sub,
    .mul = mul,
    .squaredDifference = squaredDifference,
    .reluGrad = reluGrad,
    .sigmoidGrad = sigmoidGrad,
    .tanhGrad = tanhGrad,
    .sigmoidCrossEntropy = sigmoidCrossEntropy,
    .sigmoidCrossEntropyGrad = sigmoidCrossEntropyGrad,
    .dropout = dropout,
    .sum = sumLoop,
    .biasAdd = biasAdd,
    .biasAddGrad = biasAddGrad,
    .mulRows = mulRows,
    .softmax = softmax,
    .softmaxGrad = softmaxGrad,
    .softmaxCrossEntropy = softmaxCrossEntropy,
};

}  // namespace dtf::runtime::DTF_ISA
