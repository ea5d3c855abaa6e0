#pragma once

// Products of float32 matrices: blocked for the caches, packed into a workspace of the caller,
// without allocating. Every element of the result is one chain of multiply-adds in the order of k.
// So all instruction sets with a fused multiply-add (x86-64-v3 and -v4) give the same bits, with
// any tiles and any number of threads.
// //
// If the processor `rounds_factors`, A and B are rounded to the nearest bfloat16. Every element of
// the result is then, for each 32 of k from the first on, the sum of two such chains, over the even
// and over the odd k: the order of AMX tiles, which all instruction sets follow to the bit (except
// for sums below 2^-121). It is faster only with AMX.

#include <cstddef>

#include "common/runtime/matrix_product_isa.h"
#include "common/runtime/processor.h"

namespace dtf::runtime {

// Depends only on the sizes and `cpu`; at most about 2.5 MB a thread for matrices of any size.
size_t matrixProductWorkspaceBytes(const Processor& cpu, const MatrixProduct& product);

// The threads split rows or columns of C. Thread-safe for products that share no memory but A and
// B, and no pool.
void matrixProduct(const Processor& cpu, const MatrixProduct& product);

}  // namespace dtf::runtime
