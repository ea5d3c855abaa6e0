// The kernels of gpu/kernels, compiled for the host.

#include "gpu/kernels/activations.cu"  // NOLINT(bugprone-suspicious-include)
#include "gpu/kernels/arrays.cu"       // NOLINT(bugprone-suspicious-include)
#include "gpu/kernels/batch_norms.cu"  // NOLINT(bugprone-suspicious-include)
#include "gpu/kernels/elements.cu"     // NOLINT(bugprone-suspicious-include)
#include "gpu/kernels/fused_softmax.cu"  // NOLINT(bugprone-suspicious-include)
#include "gpu/kernels/labels.cu"       // NOLINT(bugprone-suspicious-include)
#include "gpu/kernels/norms.cu"        // NOLINT(bugprone-suspicious-include)
#include "gpu/kernels/pools.cu"        // NOLINT(bugprone-suspicious-include)
#include "gpu/kernels/rows.cu"         // NOLINT(bugprone-suspicious-include)
#include "gpu/kernels/transposes.cu"   // NOLINT(bugprone-suspicious-include)
