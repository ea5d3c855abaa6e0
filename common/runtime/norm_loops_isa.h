#pragma once

// The tables that norm_loops_isa.cc defines, one per instruction set; see vector.h.

#include "common/runtime/norm_loops.h"

namespace dtf::runtime {
namespace baseline {
extern const NormLoops kNormLoops;
}
namespace v3 {
extern const NormLoops kNormLoops;
}
namespace v4 {
extern const NormLoops kNormLoops;
}
}  // namespace dtf::runtime
