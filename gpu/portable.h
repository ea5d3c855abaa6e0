#pragma once

// The kernels of kernels/*.cu are C++ that nvcc compiles for GPUs and any compiler for the host:
// there their arithmetic and indexing are tested where no GPU is (tests/gpu).

#if defined(__CUDACC__)
#define DTF_HOST_DEVICE __host__ __device__
#else
#define DTF_HOST_DEVICE
#endif
