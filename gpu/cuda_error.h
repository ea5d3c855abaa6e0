#pragma once

// Converts results of CUDA's libraries to PluginErrors. Internal: only files that call the
// libraries include it.

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <cudnn.h>

#include <string>

#include "gpu/error.h"

namespace dtf::gpu {

// `what` names the operation: "copying to the device". An error of the device itself lasts until
// the process ends.
inline void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  const bool memory = result == cudaErrorMemoryAllocation;
  (void)cudaGetLastError();
  throw PluginError(DTF_PLUGIN_UNAVAILABLE,
                    memory
                        ? std::string("The GPU is out of memory while ") + what +
                              "; make the batch or the model smaller, or end other programs on it."
                        : std::string("The GPU failed while ") + what + ": " +
                              cudaGetErrorString(result) + " (" + cudaGetErrorName(result) + ").");
}

inline void check(cublasStatus_t result, const char* what) {
  if (result == CUBLAS_STATUS_SUCCESS) return;
  throw PluginError(
      result == CUBLAS_STATUS_ALLOC_FAILED ? DTF_PLUGIN_UNAVAILABLE : DTF_PLUGIN_INTERNAL,
      std::string("cuBLASLt failed while ") + what + ": " + cublasLtGetStatusName(result) + ".");
}

inline void check(cudnnStatus_t result, const char* what) {
  if (result == CUDNN_STATUS_SUCCESS) return;
  throw PluginError(DTF_PLUGIN_INTERNAL, std::string("cuDNN failed while ") + what + ": " +
                                             cudnnGetErrorString(result) + ".");
}

}  // namespace dtf::gpu
