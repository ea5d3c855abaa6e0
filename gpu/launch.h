#pragma once

// The split of kernels' work: by element, or by teams of threads that reduce a row. On the host a
// team is one thread. All sums have a fixed order, so a kernel gives the same bits each time.

#include <cstdint>

#include "gpu/device.h"
#include "gpu/error.h"
#include "gpu/portable.h"

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#endif

namespace dtf::gpu {

#if defined(__CUDACC__)

// The threads of a block. `size` is a power of two of at least 32.
class Team {
 public:
  __device__ int64_t rank() const { return threadIdx.x; }
  __device__ int64_t size() const { return blockDim.x; }
  __device__ void wait() const { __syncthreads(); }

  // Returns the sum of all threads' values to each thread.
  template <class T>
  __device__ T sum(T value) const {
    return reduce(value, [](T a, T b) { return a + b; });
  }
  // NaN counts as the largest.
  template <class T>
  __device__ T max(T value) const {
    return reduce(value, [](T a, T b) { return a > b || a != a ? a : b; });
  }
  // Sums only over threads whose ranks differ by a multiple of `stride`, a power of two of at most
  // size(). All threads get the result.
  template <class T>
  __device__ T sumOfEvery(int64_t stride, T value) const {
    __shared__ T values[kThreadsMax];
    values[threadIdx.x] = value;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half >= stride; half /= 2) {
      if (threadIdx.x < half) values[threadIdx.x] += values[threadIdx.x + half];
      __syncthreads();
    }
    const T result = values[threadIdx.x % static_cast<unsigned>(stride)];
    __syncthreads();
    return result;
  }

 private:
  static constexpr unsigned kWarp = 32;

  // Reduces each warp, then the warps' values, which all warps do alike: in a fixed order.
  template <class T, class Combine>
  __device__ T reduce(T value, Combine combine) const {
    value = ofLanes(value, kWarp, combine);
    if (blockDim.x == kWarp) return value;
    __shared__ T values[kThreadsMax / kWarp];
    const unsigned lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
    if (lane == 0) values[threadIdx.x / kWarp] = value;
    __syncthreads();
    value = ofLanes(values[lane % warps], warps, combine);
    __syncthreads();  // before the next reduction writes
    return value;
  }
  // Reduces the first `lanes` of a warp, a power of two; all of its lanes get the result.
  template <class T, class Combine>
  __device__ static T ofLanes(T value, unsigned lanes, Combine combine) {
    constexpr unsigned kAll = 0xffffffffu;
    for (unsigned half = lanes / 2; half > 0; half /= 2)
      value = combine(value, __shfl_down_sync(kAll, value, half));
    return __shfl_sync(kAll, value, 0);
  }

 public:
  static constexpr int kThreadsMax = 256;
};

template <class F>
__global__ void elementsKernel(int64_t n, F f) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) f(i);
}

template <class F>
__global__ void teamsKernel(int64_t teams, F f) {
  for (int64_t i = blockIdx.x; i < teams; i += gridDim.x) f(Team(), i);
}

inline void throwIfNotLaunched() {
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess)
    throw PluginError(DTF_PLUGIN_UNAVAILABLE,
                      std::string("A kernel can't be launched on this GPU: ") +
                          cudaGetErrorString(error) +
                          (error == cudaErrorNoKernelImageForDevice
                               ? ". Build libdtf_gpu.so for it: -Dgpu_arch=80,90 and so on."
                               : "."));
}

// Calls f(i) for i in [0, n).
template <class F>
void forElements(Device& device, int64_t n, const F& f) {
  if (n <= 0) return;
  constexpr int64_t kThreads = 256, kBlocksMax = 132 * 16;
  const int64_t blocks = (n + kThreads - 1) / kThreads;
  elementsKernel<<<static_cast<unsigned>(blocks < kBlocksMax ? blocks : kBlocksMax), kThreads, 0,
                   device.stream()>>>(n, f);
  throwIfNotLaunched();
  device.countLaunch();
}

// Calls f(team, i) for i in [0, teams), with teams sized for `work` elements each.
template <class F>
void forTeams(Device& device, int64_t teams, int64_t work, const F& f) {
  if (teams <= 0) return;
  constexpr int64_t kBlocksMax = 65535;
  unsigned threads = 32;
  while (threads < Team::kThreadsMax && threads < work) threads *= 2;
  teamsKernel<<<static_cast<unsigned>(teams < kBlocksMax ? teams : kBlocksMax), threads, 0,
                device.stream()>>>(teams, f);
  throwIfNotLaunched();
  device.countLaunch();
}

#else

class Team {
 public:
  static constexpr int kThreadsMax = 1;
  int64_t rank() const { return 0; }
  int64_t size() const { return 1; }
  void wait() const {}
  template <class T>
  T sum(T value) const {
    return value;
  }
  template <class T>
  T sumOfEvery(int64_t, T value) const {
    return value;
  }
  template <class T>
  T max(T value) const {
    return value;
  }
};

template <class F>
void forElements(Device& device, int64_t n, const F& f) {
  if (n <= 0) return;
  for (int64_t i = 0; i < n; ++i) f(i);
  device.countLaunch();
}

template <class F>
void forTeams(Device& device, int64_t teams, int64_t work, const F& f) {
  (void)work;
  if (teams <= 0) return;
  for (int64_t i = 0; i < teams; ++i) f(Team(), i);
  device.countLaunch();
}

#endif

}  // namespace dtf::gpu
