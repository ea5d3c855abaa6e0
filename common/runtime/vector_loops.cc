#include "common/runtime/vector_loops.h"

#include <string>

#include "common/base/check.h"
#include "common/runtime/vector_loops_isa.h"

namespace dtf::runtime {

const VectorLoops& vectorLoops(Isa isa) {
  DTF_CHECK_MSG(isa <= bestIsa(), std::string(isaName(isa)));
#if defined(__x86_64__)
  if (isa == Isa::kV4) return v4::kVectorLoops;
  if (isa == Isa::kV3) return v3::kVectorLoops;
#endif
  return baseline::kVectorLoops;
}

}  // namespace dtf::runtime
