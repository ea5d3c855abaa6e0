#pragma once

// The per-instruction-set entry points of fused_softmax.h; see vector.h for why they are separate
// objects.

#include "common/runtime/fused_softmax.h"

namespace dtf::runtime {

// Where each part of the workspace starts, in floats. "Block": 16 inputs; "group": 16 rows.
struct FusedSoftmaxWorkspace {
  int64_t weights = 0;  // [blocks][classes][16]: times `scale`, padding zero
  int64_t rows;         // [batch][row_stride]: the batch as float32, padding to a whole block zero
  int64_t row_stride;
  int64_t logits;    // [groups][classes][16], then the gradient in the same place
  int64_t losses;    // [groups][16]
  int64_t elements;  // of the whole workspace
};
FusedSoftmaxWorkspace fusedSoftmaxWorkspace(int64_t batch, int64_t inputs, int64_t classes);

namespace baseline {
void fusedSoftmax(const FusedSoftmaxStep& step, const FusedSoftmaxWorkspace& at);
}
namespace v3 {
void fusedSoftmax(const FusedSoftmaxStep& step, const FusedSoftmaxWorkspace& at);
}
namespace v4 {
void fusedSoftmax(const FusedSoftmaxStep& step, const FusedSoftmaxWorkspace& at);
}

}  // namespace dtf::runtime
