#pragma once

// A convolution as a graph of cuDNN. Internal, see cuda_error.h.

#include "gpu/convolution.h"
#include "gpu/cudnn_graph.h"
#include "gpu/rounding.h"

namespace dtf::gpu {

// `handle` may be null, to ask what a device that isn't there could run.
Descriptor convolutionGraph(const Convolution& c, Pass pass, cudnnHandle_t handle);

// Whether an engine of such a configuration adds up what it says: neither rounded more than
// `rounding` allows nor in another order each time.
bool keepsPromise(const Descriptor& config, Rounding rounding);

}  // namespace dtf::gpu
