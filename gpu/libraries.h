#pragma once

// The handles of CUDA's libraries that a device keeps. Internal, see cuda_error.h.

#include "gpu/cuda_error.h"
#include "gpu/device.h"

namespace dtf::gpu {

// Owns both handles; cuDNN's works on the device's stream.
struct Device::Libraries {
  Libraries() = default;
  ~Libraries() {
    if (blas != nullptr) cublasLtDestroy(blas);
    if (dnn != nullptr) cudnnDestroy(dnn);
  }
  Libraries(const Libraries&) = delete;
  Libraries& operator=(const Libraries&) = delete;

  cublasLtHandle_t blas = nullptr;
  cudnnHandle_t dnn = nullptr;
};

}  // namespace dtf::gpu
