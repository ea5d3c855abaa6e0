#pragma once

// Reports of kernels about invalid data, such as a label without a class. The first one counts; the
// device reads it when the host waits for the step.

#include <cstdint>

#include "gpu/portable.h"

namespace dtf::gpu {

// In memory that kernels write. `source` is a result of Device::addSource().
struct BadData {
  uint32_t raised = 0;
  int32_t source = 0;
  int64_t index = 0;
  double value = 0;
};

DTF_HOST_DEVICE inline void raise(BadData* bad, int32_t source, int64_t index, double value) {
#if defined(__CUDA_ARCH__)
  if (atomicCAS(&bad->raised, 0U, 1U) != 0) return;
#else
  if (bad->raised != 0) return;
  bad->raised = 1;
#endif
  bad->source = source;
  bad->index = index;
  bad->value = value;
}

}  // namespace dtf::gpu
