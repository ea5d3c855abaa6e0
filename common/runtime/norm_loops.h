#pragma once

// The loops behind batch and layer normalisation (graph/standard_norm_ops.cc), compiled once per
// instruction set. Sums over rows go block by block, and sums over a row use a fixed number of
// lanes, so all instruction sets give the same bits.

#include <cstddef>
#include <cstdint>

#include "common/base/isa.h"

namespace dtf::runtime {
struct Processor;
}

namespace dtf::runtime {

// x is [rows, channels], dense. `mean` and `inverse` have a number for each channel (batch) or row
// (layer). Value type.
struct NormInput {
  int64_t rows = 0, channels = 0;
  float epsilon = 0;
  const float* x = nullptr;
  const float* scale = nullptr;
  const float* offset = nullptr;
  // batch() only: a tensor added to the normalised x, and whether a relu follows.
  const float* residual = nullptr;
  bool relu = false;
};
struct NormOutput {
  float* y = nullptr;
  float* mean = nullptr;
  float* variance = nullptr;  // with divisor rows - 1; batch only
  float* inverse = nullptr;
};
struct NormGradient {
  // The mask of a relu behind the normalisation: only the gradient that the relu let pass counts.
  enum class Mask : uint8_t {
    kNone,   // no relu
    kFromY,  // from the output of the relu
    kFromX   // from its input, recomputed from x
  };

  int64_t rows = 0, channels = 0;
  const float* dy = nullptr;
  const float* dy_more = nullptr;  // second term of dy; batch only, like the next three
  Mask mask = Mask::kNone;
  const float* y = nullptr;       // kFromY
  const float* offset = nullptr;  // kFromX
  const float* x = nullptr;
  const float* scale = nullptr;
  const float* mean = nullptr;
  const float* inverse = nullptr;
  float* dx = nullptr;      // may be dy, dy_more, x or y
  float* passed = nullptr;  // target of the masked gradient, or nullptr; batch only
  float* dscale = nullptr;
  float* doffset = nullptr;
};

// Rows per block of the sum. The sums of blocks are added in order with compensation (W. Kahan):
// otherwise a sum over a million rows would lose its last digits.
inline constexpr int64_t kNormBlockRows = 128;
inline constexpr int64_t kNormTerms = 2;  // largest number of sums for a channel

// Blocks and rows are given as ranges [begin, end). `sums`: [blocks, terms, channels] of all
// blocks.
struct NormLoops {
  // Sums of x, or of (x - mean)^2; one term.
  void (*batchSums)(const NormInput& in, const float* mean, int64_t begin, int64_t end,
                    float* sums);
  void (*batchMean)(const NormInput& in, const float* sums, float* mean);
  void (*batchVariance)(const NormInput& in, const float* sums, const NormOutput& out);
  void (*batch)(const NormInput& in, const NormOutput& out, int64_t begin, int64_t end);
  void (*batchInference)(const NormInput& in, const float* mean, const float* variance, float* y,
                         int64_t begin, int64_t end);
  // Gradients: two terms, then dscale and doffset from them, then dx.
  void (*batchGradSums)(const NormGradient& g, int64_t begin, int64_t end, float* sums);
  void (*batchGradOfScale)(const NormGradient& g, const float* sums);
  void (*batchGrad)(const NormGradient& g, int64_t begin, int64_t end);
  void (*layer)(const NormInput& in, const NormOutput& out, int64_t begin, int64_t end);
  void (*layerGradSums)(const NormGradient& g, int64_t begin, int64_t end, float* sums);
  void (*layerGradOfScale)(const NormGradient& g, const float* sums);
  void (*layerGrad)(const NormGradient& g, int64_t begin, int64_t end);
};

// Returns the loops for an instruction set listed by supportedIsas(). Thread-safe.
const NormLoops& normLoops(Isa isa);

// The functions below split rows and blocks among the threads. `sums` has normSumsBytes().
size_t normSumsBytes(int64_t rows, int64_t channels);
void batchNorm(const Processor& cpu, const NormInput& in, const NormOutput& out, float* sums);
void batchNormInference(const Processor& cpu, const NormInput& in, const float* mean,
                        const float* variance, float* y);
void batchNormGrad(const Processor& cpu, const NormGradient& g, float* sums);
void layerNorm(const Processor& cpu, const NormInput& in, const NormOutput& out);
void layerNormGrad(const Processor& cpu, const NormGradient& g, float* sums);

}  // namespace dtf::runtime
