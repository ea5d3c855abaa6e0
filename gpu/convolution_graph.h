#pragma once

// A convolution as a graph of cuDNN. Internal, see cuda_error.h.

#include "gpu/convolution.h"
#include "gpu/cudnn_graph.h"
#include "gpu/rounding.h"

namespace dtf::gpu {

// `handle` may be null, to query support for a device that isn't present.
Descriptor convolutionGraph(const Convolution& c, Pass pass, cudnnHandle_t handle);

// Returns whether an engine of this configuration sums as required: no more rounding than
// `rounding` allows, and the same order each time.
bool keepsPromise(const Descriptor& config, Rounding rounding);

}  // namespace dtf::gpu
