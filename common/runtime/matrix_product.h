#pragma once

// Products of float32 matrices: blocked for the caches, packed into a workspace that the caller
// provides, without allocating. Every element of the result is one chain of multiply-adds
// in the order of k, so all instruction sets with a fused multiply-add (x86-64-v3 and -v4) give the
// same bits, whatever their tiles, and any number of threads.
//
// Where the processor `rounds_factors`, A and B are rounded to bfloat16, the nearest, and every
// element of the result is, for each 32 of k from the first on, the sum of two such chains, those
// of the even and of the odd k: what the tiles of AMX compute, and all instruction sets to the same
// bits (but for sums below 2^-121). Only there it is faster.

#include <cstddef>

#include "common/runtime/matrix_product_isa.h"
#include "common/runtime/processor.h"

namespace dtf::runtime {

// Depends on the sizes and `cpu` alone; bounded by about 2.5 MB a thread however large the matrices
// are.
size_t matrixProductWorkspaceBytes(const Processor& cpu, const MatrixProduct& product);

// Rows or columns of C are shared out to the threads. Thread-safe for products that share no memory
// but A and B, and no pool.
void matrixProduct(const Processor& cpu, const MatrixProduct& product);

}  // namespace dtf::runtime
