#pragma once

// The tables that vector_loops_isa.cc defines, one per instruction set; see vector.h.

#include "common/runtime/vector_loops.h"

namespace dtf::runtime {
namespace baseline {
extern const VectorLoops kVectorLoops;
}
namespace v3 {
extern const VectorLoops kVectorLoops;
}
namespace v4 {
extern const VectorLoops kVectorLoops;
}
}  // namespace dtf::runtime
