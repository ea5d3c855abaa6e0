#include "gpu/kernel.h"

namespace dtf::gpu {

const KernelTable& kernelTable() {
  static const KernelTable table = [] {
    KernelTable made;
    addElementKernels(made);
    addTypedKernels(made);
    addActivationKernels(made);
    addRowKernels(made);
    addLabelKernels(made);
    addArrayKernels(made);
    addReductionKernels(made);
    addRandomKernels(made);
    addNormKernels(made);
    addBatchNormKernels(made);
    addFusedSoftmaxKernel(made);
    addPoolKernels(made);
    addGradientKernels(made);
    addUpdateKernels(made);
    addMatMulKernel(made);
    addConvolutionKernels(made);
    return made;
  }();
  return table;
}

}  // namespace dtf::gpu
