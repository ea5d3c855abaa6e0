#pragma once

// The entry points of matrix_product_isa.cc, one per instruction set; vector.h explains why these
// are separate objects.

#include <cstddef>
#include <cstdint>

namespace dtf::runtime {

// C = A * B. A is [m, k], stored as [k, m] if `transpose_a`; B is [k, n], stored as [n, k] if
// `transpose_b`; C is [m, n]. All are row-major, and C overlaps no operand. Value type.
struct MatrixProduct {
  int64_t m = 0, k = 0, n = 0;
  bool transpose_a = false, transpose_b = false;
  bool accumulate = false;  // C += A * B: the chain of each element continues from its value
  // Distances of stored rows, for parts of wider matrices; 0: dense.
  int64_t a_stride = 0, b_stride = 0, c_stride = 0;
  const float* a = nullptr;
  const float* b = nullptr;
  // For rounded products, instead of `a`, `b`: pointers to the runs of floats that form the stored
  // rows, a stride of pointers for each row; nullptr: zeros. The lengths are multiples of 32.
  const float* const* a_runs = nullptr;
  const float* const* b_runs = nullptr;
  int64_t a_run = 0, b_run = 0;
  float* c = nullptr;
  float* workspace = nullptr;  // matrixProductWorkspaceBytes(), aligned to 64
};

namespace baseline {
size_t matrixProductWorkspaceBytes(const MatrixProduct& product);
void matrixProduct(const MatrixProduct& product);
}  // namespace baseline
namespace v3 {
size_t matrixProductWorkspaceBytes(const MatrixProduct& product);
void matrixProduct(const MatrixProduct& product);
}  // namespace v3
namespace v4 {
size_t matrixProductWorkspaceBytes(const MatrixProduct& product);
void matrixProduct(const MatrixProduct& product);
}  // namespace v4

}  // namespace dtf::runtime
