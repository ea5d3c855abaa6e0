#pragma once

// The loops behind batch and layer normalisation (graph/standard_norm_ops.cc), compiled once per
// instruction set. Sums over rows go block by block, and those over a row in a fixed number of
// lanes, so results have the same bits on all of them.

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
  // batch() alone: what is added to the normalised x, and whether a relu follows.
  const float* residual = nullptr;
  bool relu = false;
};
struct NormOutput {
  float* y = nullptr;
  float* mean = nullptr;
  float* variance = nullptr;  // of rows - 1; batch only
  float* inverse = nullptr;
};
struct NormGradient {
  // Of the gradient that comes back through a relu behind the normalisation only what the relu let
  // pass counts.
  enum class Mask : uint8_t {
    kNone,   // there is no relu
    kFromY,  // what the relu has made says it
    kFromX   // what it read does, which is normalised once more
  };

  int64_t rows = 0, channels = 0;
  const float* dy = nullptr;
  const float* dy_more = nullptr;  // added to it; batch only, as the next three
  Mask mask = Mask::kNone;
  const float* y = nullptr;       // kFromY
  const float* offset = nullptr;  // kFromX
  const float* x = nullptr;
  const float* scale = nullptr;
  const float* mean = nullptr;
  const float* inverse = nullptr;
  float* dx = nullptr;      // may be dy, dy_more, x or y
  float* passed = nullptr;  // nullptr, or where what has passed the mask goes; batch only
  float* dscale = nullptr;
  float* doffset = nullptr;
};

// Rows that are summed one after the other; the sums of such blocks are added up in their order,
// and what that rounds away is kept (W. Kahan): a sum over a million rows would lose its last
// digits otherwise.
inline constexpr int64_t kNormBlockRows = 128;
inline constexpr int64_t kNormTerms = 2;  // sums of a channel, at most

// Blocks and rows are ranges [begin, end) of all. `sums`: [blocks, terms, channels] of all blocks.
struct NormLoops {
  // Of x, or of (x - mean)^2; one term.
  void (*batchSums)(const NormInput& in, const float* mean, int64_t begin, int64_t end,
                    float* sums);
  void (*batchMean)(const NormInput& in, const float* sums, float* mean);
  void (*batchVariance)(const NormInput& in, const float* sums, const NormOutput& out);
  void (*batch)(const NormInput& in, const NormOutput& out, int64_t begin, int64_t end);
  void (*batchInference)(const NormInput& in, const float* mean, const float* variance, float* y,
                         int64_t begin, int64_t end);
  // Gradients: two terms, of which dscale and doffset are made, and then dx.
  void (*batchGradSums)(const NormGradient& g, int64_t begin, int64_t end, float* sums);
  void (*batchGradOfScale)(const NormGradient& g, const float* sums);
  void (*batchGrad)(const NormGradient& g, int64_t begin, int64_t end);
  void (*layer)(const NormInput& in, const NormOutput& out, int64_t begin, int64_t end);
  void (*layerGradSums)(const NormGradient& g, int64_t begin, int64_t end, float* sums);
  void (*layerGradOfScale)(const NormGradient& g, const float* sums);
  void (*layerGrad)(const NormGradient& g, int64_t begin, int64_t end);
};

// The loops for an instruction set that supportedIsas() lists. Thread-safe.
const NormLoops& normLoops(Isa isa);

// The functions below share rows and blocks out to the threads. `sums` has normSumsBytes().
size_t normSumsBytes(int64_t rows, int64_t channels);
void batchNorm(const Processor& cpu, const NormInput& in, const NormOutput& out, float* sums);
void batchNormInference(const Processor& cpu, const NormInput& in, const float* mean,
                        const float* variance, float* y);
void batchNormGrad(const Processor& cpu, const NormGradient& g, float* sums);
void layerNorm(const Processor& cpu, const NormInput& in, const NormOutput& out);
void layerNormGrad(const Processor& cpu, const NormGradient& g, float* sums);

}  // namespace dtf::runtime
