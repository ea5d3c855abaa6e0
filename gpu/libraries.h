#pragma once

// CUDA's objects of a device: handles of libraries, plans, the copies' threads. Internal, see
// cuda_error.h.

#include <map>
#include <memory>
#include <string>

#include "gpu/cuda_error.h"
#include "gpu/cudnn_graph.h"
#include "gpu/device.h"
#include "gpu/host_copies.h"
#include "gpu/plan_cache.h"

namespace dtf::gpu {

// Owns both handles; cuDNN's uses the device's stream.
struct Device::Libraries {
  Libraries() = default;
  ~Libraries() {
    plans.clear();  // before their handle
    if (blas != nullptr) cublasLtDestroy(blas);
    if (dnn != nullptr) cudnnDestroy(dnn);
  }
  Libraries(const Libraries&) = delete;
  Libraries& operator=(const Libraries&) = delete;

  cublasLtHandle_t blas = nullptr;
  cudnnHandle_t dnn = nullptr;
  std::unique_ptr<HostCopies> copies;
  std::unique_ptr<PlanCache> kept;    // the chosen ways
  std::map<std::string, Plan> plans;  // of convolutions, by their properties
  std::map<std::string, cublasLtMatmulHeuristicResult_t> algorithms;  // of products, likewise
};

}  // namespace dtf::gpu
