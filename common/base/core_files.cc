#include "common/base/core_files.h"

#include <sys/resource.h>

#include <algorithm>

#include "common/base/check.h"

namespace dtf {

// One byte, which is none: with 0 a kernel whose core_pattern is a program still gives it the image
// (core(5)). The hard limit, too: what this process loads or starts can't take it back. Lowering it
// is everybody's right.
void leaveNoCoreFiles() {
  rlimit limit{};
  DTF_CHECK(::getrlimit(RLIMIT_CORE, &limit) == 0);
  limit.rlim_cur = limit.rlim_max = std::min<rlim_t>(limit.rlim_max, 1);
  DTF_CHECK(::setrlimit(RLIMIT_CORE, &limit) == 0);
}

}  // namespace dtf
