#pragma once

// The dimensions of a MatMul: c[m, n] = a[m, k] * b[k, n], all row-major, where a and b may be
// stored transposed.

#include <cstdint>

#include "gpu/operation.h"

namespace dtf::gpu {

// Value type.
struct Product {
  explicit Product(const Operation& o)
      : transpose_a(o.flag("transpose_a")),
        transpose_b(o.flag("transpose_b")),
        m(o.inputs[0].dims[transpose_a ? 1 : 0]),
        k(o.inputs[0].dims[transpose_a ? 0 : 1]),
        n(o.inputs[1].dims[transpose_b ? 0 : 1]) {}
  bool transpose_a, transpose_b;
  int64_t m, k, n;
};

}  // namespace dtf::gpu
