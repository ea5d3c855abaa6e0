#include "common/base/core_files.h"

#include <sys/resource.h>

#include "common/base/check.h"

namespace dtf {

// The hard limit, too: what this process loads or starts can't take it back. Lowering it is everybody's right.
void leaveNoCoreFiles() {
  const rlimit none{0, 0};
  DTF_CHECK(::setrlimit(RLIMIT_CORE, &none) == 0);
}

}  // namespace dtf
