#pragma once

// The order in which a step computes its gradients. Internal to common/runtime.

#include "common/runtime/lowering.h"

namespace dtf::runtime {

// Moves each operation that produces a gradient right behind its inputs, so that the gradient can
// be sent while earlier layers are computed: of the two products in a layer's backward pass, the
// weights' gradient comes first. Other operations keep their order, and the order stays
// topological. Results don't change.
void makeGradientsEarly(LoweredStep& step);

}  // namespace dtf::runtime
