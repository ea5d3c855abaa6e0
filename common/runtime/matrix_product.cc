#include "common/runtime/matrix_product.h"

#include "common/base/check.h"
#include "common/runtime/matrix_product_isa.h"

namespace dtf::runtime {

size_t matrixProductWorkspaceBytes(Isa isa, const MatrixProduct& product) {
  DTF_CHECK(product.m >= 0 && product.k >= 0 && product.n >= 0);
#if defined(__x86_64__)
  if (isa == Isa::kV4) return v4::matrixProductWorkspaceBytes(product);
  if (isa == Isa::kV3) return v3::matrixProductWorkspaceBytes(product);
#endif
  return baseline::matrixProductWorkspaceBytes(product);
}

namespace {

bool fits(int64_t stride, int64_t row) {
  return stride == 0 || stride >= row;
}

}  // namespace

void matrixProduct(Isa isa, const MatrixProduct& product) {
  DTF_CHECK_MSG(product.m > 0 && product.k > 0 && product.n > 0, "an empty product");
  DTF_CHECK(product.a != nullptr && product.b != nullptr && product.c != nullptr);
  DTF_CHECK_MSG(fits(product.a_stride, product.transpose_a ? product.m : product.k) &&
                    fits(product.b_stride, product.transpose_b ? product.k : product.n) &&
                    fits(product.c_stride, product.n),
                "a stride shorter than its row");
  DTF_CHECK(reinterpret_cast<uintptr_t>(product.workspace) % 64 == 0 &&
            product.workspace != nullptr);
#if defined(__x86_64__)
  if (isa == Isa::kV4) return v4::matrixProduct(product);
  if (isa == Isa::kV3) return v3::matrixProduct(product);
#endif
  baseline::matrixProduct(product);
}

}  // namespace dtf::runtime
