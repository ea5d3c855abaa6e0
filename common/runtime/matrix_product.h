#pragma once

// Products of float32 matrices by one thread: blocked for the caches, packed into a workspace that
// the caller provides, without allocating. Every element of the result is one chain of multiply-adds
// in the order of k, so all instruction sets with a fused multiply-add (x86-64-v3 and -v4) give the
// same bits, whatever their tiles.

#include <cstddef>
#include <cstdint>

#include "common/base/isa.h"

namespace dtf::runtime {

// C = A * B. A is [m, k], stored as [k, m] when `transpose_a`; B is [k, n], stored as [n, k] when
// `transpose_b`; C is [m, n]. All are row-major, and C overlaps no other. Value type.
struct MatrixProduct {
  int64_t m = 0, k = 0, n = 0;
  bool transpose_a = false, transpose_b = false;
  bool accumulate = false;  // C += A * B: the chain of each element goes on from what is there
  // From one stored row to the next, where the matrix is a part of a wider one; 0: dense.
  int64_t a_stride = 0, b_stride = 0, c_stride = 0;
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;
  float* workspace = nullptr;  // matrixProductWorkspaceBytes(), aligned to 64
};

// Depends on the sizes and `isa` alone; bounded by about 2.5 MB however large the matrices are.
size_t matrixProductWorkspaceBytes(Isa isa, const MatrixProduct& product);

// With `isa`, one of those that this CPU can run. Thread-safe for products that share no memory but
// A and B.
void matrixProduct(Isa isa, const MatrixProduct& product);

}  // namespace dtf::runtime
