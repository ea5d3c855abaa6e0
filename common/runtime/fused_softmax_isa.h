#pragma once

// The entry points of fused_softmax.h, one per instruction set; vector.h explains why they are
// separate objects.

#include "common/runtime/fused_softmax.h"

namespace dtf::runtime {

// The offsets of the workspace's parts, in floats. "Block": 16 inputs; "group": 16 rows.
struct FusedSoftmaxWorkspace {
  int64_t weights = 0;  // [blocks][classes][16]: times `scale`, padded with zeros
  int64_t rows;  // [batch][row_stride]: the batch as float32, padded with zeros to a whole block
  int64_t row_stride;
  int64_t logits;    // [groups][classes][16], then the gradient in the same place
  int64_t losses;    // [groups][16]
  int64_t elements;  // of the whole workspace
};
FusedSoftmaxWorkspace fusedSoftmaxWorkspace(int64_t batch, int64_t inputs, int64_t classes);

// The passes of one step, in this order; see fused_softmax_isa.cc. Different threads may compute
// ranges of one pass: no result depends on the split.
struct FusedSoftmaxPasses {
  void (*weights)(const FusedSoftmaxStep& step, const FusedSoftmaxWorkspace& at);
  // Rows [begin, end); begin is a multiple of kFusedSoftmaxRows.
  void (*logits)(const FusedSoftmaxStep& step, const FusedSoftmaxWorkspace& at, int64_t begin,
                 int64_t end);
  // All results but the gradient of the weights.
  void (*softmax)(const FusedSoftmaxStep& step, const FusedSoftmaxWorkspace& at);
  // Inputs [begin, end); begin is a multiple of kFusedSoftmaxInputs.
  void (*gradient)(const FusedSoftmaxStep& step, const FusedSoftmaxWorkspace& at, int64_t begin,
                   int64_t end);
};
inline constexpr int64_t kFusedSoftmaxRows = 2;
inline constexpr int64_t kFusedSoftmaxInputs = 32;

namespace baseline {
extern const FusedSoftmaxPasses kFusedSoftmaxPasses;
}
namespace v3 {
extern const FusedSoftmaxPasses kFusedSoftmaxPasses;
}
namespace v4 {
extern const FusedSoftmaxPasses kFusedSoftmaxPasses;
}

}  // namespace dtf::runtime
