#pragma once

// Functions for the tests of branches and loops.

#include <span>
#include <utility>
#include <vector>

#include "common/graph/builder.h"
#include "common/graph/function.h"
#include "common/graph/op_def.h"

namespace dtf::graph::testing {

inline TensorSpec floatSpec(Shape shape) {
  return {DType::kFloat32, std::move(shape)};
}

// A function of float32 tensors of one shape, with as many results as `build` makes.
inline FunctionRef functionOf(size_t parameters, const Shape& shape, const Function::Build& build) {
  return Function::build(standardOps(), std::vector<TensorSpec>(parameters, floatSpec(shape)),
                         build);
}

}  // namespace dtf::graph::testing
