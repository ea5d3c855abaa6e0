#pragma once

// The loops behind the CPU kernels, compiled once per instruction set (vector_loops_isa.cc). They
// use no fused multiply-add and reduce in one fixed order, so their results have the same bits on
// every instruction set.

#include <cstdint>

#include "common/base/isa.h"

namespace dtf::runtime {

inline constexpr int64_t kDropoutBlockElements = 4;

// The random numbers of Dropout; see graph/standard_nn_ops.cc.
struct DropoutMask {
  uint32_t key[2] = {};      // Philox's key
  uint32_t counter[3] = {};  // Philox's words 1 to 3; word 0 is the block
  uint32_t threshold = 0;    // a number below it drops its element
  float scale = 1;           // the factor of kept elements
  // of the first element; a multiple of 16, as 16 blocks serve 64 elements
  uint32_t first_block = 0;
};

// All arrays are dense and row-major; `n` counts elements. An output of an elementwise loop may be
// one of its inputs. The mathematics of each is in graph/standard_ops.cc, at the op of the same
// name.
struct VectorLoops {
  using Unary = void (*)(const float* x, float* y, int64_t n);
  using Binary = void (*)(const float* a, const float* b, float* y, int64_t n);

  void (*normalise)(const uint8_t* x, float scale, float* y, int64_t n);
  void (*scale)(const float* x, float factor, float* y, int64_t n);
  Unary relu, sigmoid, tanh, relu6, elu, gelu, geluApproximate, silu, softplus, abs;
  Unary exp, log, sqrt, rsqrt;
  Binary add, sub, mul, div, maximum, minimum, squaredDifference;
  Binary reluGrad, sigmoidGrad, tanhGrad, relu6Grad, eluGrad;             // (dy, y)
  Binary geluGrad, geluApproximateGrad, siluGrad, softplusGrad, absGrad;  // (dy, x)
  Binary sigmoidCrossEntropy;                                             // (logits, targets)
  void (*sigmoidCrossEntropyGrad)(const float* dy, const float* logits, const float* targets,
                                  float* dx, int64_t n);

  // With the number from the op's attribute.
  void (*leakyRelu)(const float* x, float alpha, float* y, int64_t n);
  void (*leakyReluGrad)(const float* dy, const float* x, float alpha, float* dx, int64_t n);
  void (*huber)(const float* x, float delta, float* y, int64_t n);
  void (*huberGrad)(const float* dy, const float* x, float delta, float* dx, int64_t n);

  void (*dropout)(const float* x, const DropoutMask& mask, float* y, int64_t n);

  double (*sum)(const float* x, int64_t n);  // accumulated in double

  void (*biasAdd)(const float* x, const float* bias, float* y, int64_t rows, int64_t columns);
  // Some columns, `stride` apart in a row; in row order.
  void (*biasAddGrad)(const float* dy, int64_t stride, float* db, int64_t rows, int64_t columns);
  void (*mulRows)(const float* dy, const float* x, float* y, int64_t rows, int64_t columns);
  void (*softmax)(const float* x, float* y, int64_t rows, int64_t columns);
  void (*softmaxGrad)(const float* dy, const float* y, float* dx, int64_t rows, int64_t columns);
  // Labels are in [0, columns). `backprop` may be `logits`.
  void (*softmaxCrossEntropy)(const float* logits, const int32_t* labels, float* loss,
                              float* backprop, int64_t rows, int64_t columns);
  // The same with a row of targets for each row of logits.
  void (*targetsCrossEntropy)(const float* logits, const float* targets, float* loss,
                              float* backprop, int64_t rows, int64_t columns);
};

// Returns the loops for an instruction set listed by supportedIsas(). Thread-safe.
const VectorLoops& vectorLoops(Isa isa);

}  // namespace dtf::runtime
