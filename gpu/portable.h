#pragma once

// The kernels of kernels/*.cu are C++ that nvcc compiles for GPUs and any compiler for the host,
// where tests check their arithmetic and indexing without a GPU (tests/gpu).

#if defined(__CUDACC__)
#define DTF_HOST_DEVICE __host__ __device__
#else
#define DTF_HOST_DEVICE
#endif
