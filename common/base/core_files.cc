#include "common/base/core_files.h"

#include <sys/resource.h>

#include <algorithm>

#include "common/base/check.h"

namespace dtf {

// The limit is one byte: with 0, a kernel that pipes cores to a program (core_pattern) still passes
// it the image (core(5)). One byte holds nothing. The hard limit is lowered too, so that no child
// or loaded code can raise it; any process may lower it.
void leaveNoCoreFiles() {
  rlimit limit{};
  DTF_CHECK(::getrlimit(RLIMIT_CORE, &limit) == 0);
  limit.rlim_cur = limit.rlim_max = std::min<rlim_t>(limit.rlim_max, 1);
  DTF_CHECK(::setrlimit(RLIMIT_CORE, &limit) == 0);
}

}  // namespace dtf
