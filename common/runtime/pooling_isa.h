#pragma once

// The per-instruction-set tables of pooling.h; see vector.h for why they are separate objects.

#include "common/runtime/pooling.h"

namespace dtf::runtime {

namespace baseline {
extern const PoolingLoops kPoolingLoops;
}
namespace v3 {
extern const PoolingLoops kPoolingLoops;
}
namespace v4 {
extern const PoolingLoops kPoolingLoops;
}

}  // namespace dtf::runtime
