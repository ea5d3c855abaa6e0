#include "common/runtime/norm_loops.h"

#include <string>

#include "common/base/check.h"
#include "common/runtime/norm_loops_isa.h"

namespace dtf::runtime {

const NormLoops& normLoops(Isa isa) {
  DTF_CHECK_MSG(isa <= bestIsa(), std::string(isaName(isa)));
#if defined(__x86_64__)
  if (isa == Isa::kV4) return v4::kNormLoops;
  if (isa == Isa::kV3) return v3::kNormLoops;
#endif
  return baseline::kNormLoops;
}

}  // namespace dtf::runtime
