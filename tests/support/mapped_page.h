#pragma once

// Memory of this process as another process maps it.

#include <unistd.h>

#include <memory>

#include "common/base/shared_memory.h"

namespace dtf::testing {

inline std::shared_ptr<const MappedMemory> mapped(const SharedMemory& memory) {
  return std::make_shared<const MappedMemory>(Fd(::dup(memory.descriptor())), memory.bytes());
}

}  // namespace dtf::testing
