#pragma once

// The per-instruction-set entry points of matrix_product.h; see vector.h for why they are separate
// objects.

#include "common/runtime/matrix_product.h"

namespace dtf::runtime {

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
