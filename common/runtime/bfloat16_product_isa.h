#pragma once

// The entry points of bfloat16_product_isa.cc, one per instruction set, and one for processors with
// matrix tiles (AMX). All give the same bits.

#include <cstddef>

#include "common/runtime/matrix_product_isa.h"

namespace dtf::runtime {

namespace baseline {
size_t bfloat16WorkspaceBytes(const MatrixProduct& product);
void bfloat16Product(const MatrixProduct& product);
}  // namespace baseline
namespace v3 {
size_t bfloat16WorkspaceBytes(const MatrixProduct& product);
void bfloat16Product(const MatrixProduct& product);
}  // namespace v3
namespace v4 {
size_t bfloat16WorkspaceBytes(const MatrixProduct& product);
void bfloat16Product(const MatrixProduct& product);
}  // namespace v4
namespace amx {
size_t bfloat16WorkspaceBytes(const MatrixProduct& product);
void bfloat16Product(const MatrixProduct& product);
}  // namespace amx

}  // namespace dtf::runtime
