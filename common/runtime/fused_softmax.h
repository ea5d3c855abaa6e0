#pragma once

// Softmax regression in one kernel: logits, softmax, cross-entropy and all gradients of the last
// layer of a classifier with few classes, directly from a batch of uint8 (or float32) rows. With 10
// classes a general matrix product wastes 6 of 16 lanes; here the lanes run over the inputs, and
// bytes become floats on their way into the first multiplication.

#include <cstddef>
#include <cstdint>

namespace dtf::runtime {
struct Processor;
}

namespace dtf::runtime {

inline constexpr int kFusedSoftmaxClassesMax = 16;

// One step. Every pointer is borrowed for the call; all arrays are dense and row-major.
struct FusedSoftmaxStep {
  // [batch, inputs]: exactly one of the two is set. Bytes are multiplied by `scale`.
  const uint8_t* bytes = nullptr;
  const float* floats = nullptr;
  float scale = 1.0f;               // of bytes; 1 for floats
  const float* weights = nullptr;   // [inputs, classes]
  const float* bias = nullptr;      // [classes]
  const int32_t* labels = nullptr;  // [batch], each in [0, classes): checked by the caller
  int64_t batch = 0;                // at least 1
  int64_t inputs = 0;               // at least 1
  int64_t classes = 0;              // in [1, kFusedSoftmaxClassesMax]
  float gradient_scale = 1.0f;      // d(loss) / d(loss of one example): 1/batch for a mean

  // Results; nullptr if not wanted.
  float* loss = nullptr;  // mean over the batch
  float* accuracy =
      nullptr;  // share of rows whose largest logit (the first, if tied) is the label's
  float* logits_gradient = nullptr;   // [batch, classes]
  float* weights_gradient = nullptr;  // [inputs, classes]
  float* bias_gradient = nullptr;     // [classes]

  float* workspace = nullptr;  // fusedSoftmaxWorkspaceBytes(), aligned to 64
};

size_t fusedSoftmaxWorkspaceBytes(int64_t batch, int64_t inputs, int64_t classes);

// Uses the threads of `cpu` if the batch is large enough for more than one. Thread-safe for
// distinct results and workspaces of processors without a pool. The same inputs give the same bits
// with any number of threads, on x86-64-v3 and on -v4 (the baseline has no fused multiply-add and
// differs by rounding); a row's logits don't depend on other rows.
// Errors: none; NaN and infinities pass through.
void fusedSoftmax(const Processor& cpu, const FusedSoftmaxStep& step);

}  // namespace dtf::runtime
