#include "common/runtime/matrix_product.h"

#include "common/base/check.h"
#include "common/base/isa.h"
#include "common/runtime/bfloat16_product_isa.h"
#include "common/runtime/matrix_product_isa.h"

namespace dtf::runtime {

namespace {

size_t roundedWorkspace(Isa isa, const MatrixProduct& product) {
#if defined(__x86_64__)
  if (isa == Isa::kV4) return v4::bfloat16WorkspaceBytes(product);
  if (isa == Isa::kV3) return v3::bfloat16WorkspaceBytes(product);
#endif
  return baseline::bfloat16WorkspaceBytes(product);
}

void roundedProduct(Isa isa, const MatrixProduct& product) {
#if defined(__x86_64__)
  if (isa == Isa::kV4 && hasMatrixTiles()) return amx::bfloat16Product(product);
  if (isa == Isa::kV4) return v4::bfloat16Product(product);
  if (isa == Isa::kV3) return v3::bfloat16Product(product);
#endif
  baseline::bfloat16Product(product);
}

size_t workspaceOfOne(const Processor& cpu, const MatrixProduct& product) {
  const Isa isa = cpu.isa;
  if (cpu.rounds_factors) return roundedWorkspace(isa, product);
#if defined(__x86_64__)
  if (isa == Isa::kV4) return v4::matrixProductWorkspaceBytes(product);
  if (isa == Isa::kV3) return v3::matrixProductWorkspaceBytes(product);
#endif
  return baseline::matrixProductWorkspaceBytes(product);
}

void productOfOne(const Processor& cpu, const MatrixProduct& product) {
  const Isa isa = cpu.isa;
  if (cpu.rounds_factors) return roundedProduct(isa, product);
#if defined(__x86_64__)
  if (isa == Isa::kV4) return v4::matrixProduct(product);
  if (isa == Isa::kV3) return v3::matrixProduct(product);
#endif
  baseline::matrixProduct(product);
}

// `run`: 0, or the floats in one of the row's runs.
bool fits(int64_t stride, int64_t run, int64_t row) {
  if (run > 0) return run % 32 == 0 && stride * run >= row;
  return stride == 0 || stride >= row;
}

// Whole vectors on all instruction sets; tiles divide rows evenly anyway.
constexpr int64_t kRowGrain = 2, kColumnGrain = 32, kRoundedRowGrain = 32;
// Operands that the threads don't share are packed by each thread for each of its parts: more than
// one part must be worth it.
constexpr int64_t kUnitsOfManyParts = 1024;

// Returns whether the threads split the rows of C, each reading all of B, rather than its columns,
// each reading all of A. They split the longer dimension, except when every thread can read B in
// place from its own cache: then no operand is packed twice, and rows divide evenly, which columns
// in whole vectors don't.
bool isSharedByRows(const MatrixProduct& product, int threads) {
  constexpr int64_t kCachedFloats = int64_t{1} << 17;
  constexpr int64_t kRowsInPlace = 200, kRowsLeast = 24;  // for one thread
  if (product.m >= product.n) return true;
  const int64_t rows = product.m / threads;
  return !product.transpose_b && rows >= kRowsLeast && rows <= kRowsInPlace &&
         product.k * product.n <= kCachedFloats;
}

// Returns the product for the rows or columns [begin, end) of C alone.
MatrixProduct rowsOf(MatrixProduct p, int64_t begin, int64_t end) {
  p.a_stride = p.a_stride != 0 ? p.a_stride : (p.transpose_a ? p.m : p.k);
  p.c_stride = p.c_stride != 0 ? p.c_stride : p.n;
  p.a += p.transpose_a ? begin : begin * p.a_stride;
  p.c += begin * p.c_stride;
  p.m = end - begin;
  return p;
}
MatrixProduct columnsOf(MatrixProduct p, int64_t begin, int64_t end) {
  p.b_stride = p.b_stride != 0 ? p.b_stride : (p.transpose_b ? p.k : p.n);
  p.c_stride = p.c_stride != 0 ? p.c_stride : p.n;
  p.b += p.transpose_b ? begin * p.b_stride : begin;
  p.c += begin;
  p.n = end - begin;
  return p;
}

}  // namespace

size_t matrixProductWorkspaceBytes(const Processor& cpu, const MatrixProduct& product) {
  DTF_CHECK(product.m >= 0 && product.k >= 0 && product.n >= 0);
  return PerThread(cpu, workspaceOfOne(cpu, product)).bytes();
}

void matrixProduct(const Processor& cpu, const MatrixProduct& product) {
  DTF_CHECK_MSG(product.m > 0 && product.k > 0 && product.n > 0, "an empty product");
  DTF_CHECK((product.a == nullptr) == (product.a_runs != nullptr));
  DTF_CHECK((product.b == nullptr) == (product.b_runs != nullptr) && product.c != nullptr);
  DTF_CHECK_MSG(
      (product.a != nullptr && product.b != nullptr) || (cpu.rounds_factors && cpu.threads() == 1),
      "runs are for rounded products of one thread");
  DTF_CHECK_MSG(
      fits(product.a_stride, product.a_run, product.transpose_a ? product.m : product.k) &&
          fits(product.b_stride, product.b_run, product.transpose_b ? product.k : product.n) &&
          fits(product.c_stride, 0, product.n),
      "a stride shorter than its row");
  DTF_CHECK(reinterpret_cast<uintptr_t>(product.workspace) % 64 == 0 &&
            product.workspace != nullptr);
  const PerThread workspaces(cpu, workspaceOfOne(cpu, product));
  const bool by_rows =
      cpu.rounds_factors ? product.m >= product.n : isSharedByRows(product, cpu.threads());
  const int64_t units = by_rows ? product.m : product.n;
  const int64_t unit_work = product.k * (by_rows ? product.n : product.m) * kMultiplyAddWork;
  const int parts_each = units >= kUnitsOfManyParts * cpu.threads() ? Processor::kPartsEach : 1;
  const int64_t row_grain = cpu.rounds_factors ? kRoundedRowGrain : kRowGrain;
  cpu.forRanges(units, unit_work, by_rows ? row_grain : kColumnGrain, parts_each,
                [&](int64_t begin, int64_t end, int thread) {
                  MatrixProduct p =
                      by_rows ? rowsOf(product, begin, end) : columnsOf(product, begin, end);
                  p.workspace = reinterpret_cast<float*>(
                      workspaces.of(reinterpret_cast<std::byte*>(product.workspace), thread));
                  productOfOne(cpu, p);
                });
}

}  // namespace dtf::runtime
