// MatMul by dtf's own product of matrices; it allocates nothing while it runs.

#include <algorithm>

#include "common/base/check.h"
#include "common/runtime/cpu_kernels_internal.h"
#include "common/runtime/matrix_product.h"

namespace dtf::runtime {
namespace {

// Returns sizes and transposes of the operation's product, without its memory.
MatrixProduct productOf(const Operation& o) {
  DTF_CHECK(o.input_specs.size() == 2 && o.output_specs.size() == 1);
  MatrixProduct product;
  product.transpose_a = o.attributeOr<bool>("transpose_a", false);
  product.transpose_b = o.attributeOr<bool>("transpose_b", false);
  const Shape &a = o.input_specs[0].shape, &b = o.input_specs[1].shape;
  product.m = a.dim(product.transpose_a ? 1 : 0);
  product.k = a.dim(product.transpose_a ? 0 : 1);
  product.n = b.dim(product.transpose_b ? 0 : 1);
  DTF_CHECK_MSG(b.dim(product.transpose_b ? 1 : 0) == product.k, o.name);
  DTF_CHECK_MSG(o.output_specs[0].shape.elements() == product.m * product.n, o.name);
  return product;
}

std::unique_ptr<Kernel> makeMatMul(const Operation& o, const Processor& given) {
  const Processor cpu = processorOf(o, given);
  const MatrixProduct product = productOf(o);
  const int64_t elements = product.m * product.n;
  if (elements == 0 || product.k == 0) {  // an empty sum is 0
    const auto zero = [elements](const KernelArguments& a) {
      std::fill_n(out(a, 0), elements, 0.0f);
    };
    return makeKernel(zero, kOverwritesNothing);
  }
  const auto run = [cpu, product](const KernelArguments& a) {
    MatrixProduct bound = product;
    bound.a = in(a, 0);
    bound.b = in(a, 1);
    bound.c = out(a, 0);
    bound.workspace = reinterpret_cast<float*>(a.workspace);
    matrixProduct(cpu, bound);
  };
  return makeKernel(run, kOverwritesNothing, matrixProductWorkspaceBytes(cpu, product));
}

}  // namespace

void addMatMulKernel(KernelTable& table, const Processor& cpu) {
  table.add("MatMul", DeviceType::kCpu,
            [cpu](const Operation& operation) { return makeMatMul(operation, cpu); });
}

}  // namespace dtf::runtime
