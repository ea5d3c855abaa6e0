#pragma once

// Inside common/runtime: when a step makes its gradients.

#include "common/runtime/lowering.h"

namespace dtf::runtime {

// Moves each operation that makes a gradient right behind what it needs, so that the gradient can
// leave while the layers before it are computed: of a layer's two products backwards that of its
// weights comes first. Otherwise operations keep their order, which stays topological. Changes no
// number.
void makeGradientsEarly(LoweredStep& step);

}  // namespace dtf::runtime
