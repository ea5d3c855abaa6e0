#pragma once

// The loops behind batch and layer normalisation (graph/standard_norm_ops.cc), compiled once per
// instruction set. Sums over rows go block by block, and those over a row in a fixed number of lanes,
// so results have the same bits on all of them.

#include <cstdint>

#include "common/base/isa.h"

namespace dtf::runtime {

// x is [rows, channels], dense. `mean` and `inverse` have a number for each channel (batch) or row
// (layer). Value type.
struct NormInput {
  int64_t rows = 0, channels = 0;
  float epsilon = 0;
  const float* x = nullptr;
  const float* scale = nullptr;
  const float* offset = nullptr;
};
struct NormOutput {
  float* y = nullptr;
  float* mean = nullptr;
  float* variance = nullptr;  // of rows - 1; batch only
  float* inverse = nullptr;
};
struct NormGradient {
  int64_t rows = 0, channels = 0;
  const float* dy = nullptr;
  const float* x = nullptr;
  const float* scale = nullptr;
  const float* mean = nullptr;
  const float* inverse = nullptr;
  float* dx = nullptr;  // may be dy
  float* dscale = nullptr;
  float* doffset = nullptr;
};

struct NormLoops {
  void (*batch)(const NormInput& in, const NormOutput& out);
  void (*batchInference)(const NormInput& in, const float* mean, const float* variance, float* y);
  void (*batchGrad)(const NormGradient& g);
  void (*layer)(const NormInput& in, const NormOutput& out);
  void (*layerGrad)(const NormGradient& g);
};

// The loops for an instruction set that supportedIsas() lists. Thread-safe.
const NormLoops& normLoops(Isa isa);

}  // namespace dtf::runtime
