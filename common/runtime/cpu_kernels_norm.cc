// Normalisation; the semantics are in graph/standard_norm_ops.cc.

#include "common/runtime/cpu_kernels_internal.h"
#include "common/runtime/norm_loops.h"

namespace dtf::runtime {
namespace {

// The sizes of x, which is input `x` of the operation.
template <class T>
T sized(const Operation& o, size_t x) {
  const Shape& shape = o.input_specs[x].shape;
  T made;
  made.channels = shape.dim(shape.rank() - 1);
  made.rows = shape.elements() / made.channels;
  return made;
}

NormInput inputOf(const Operation& o) {
  auto made = sized<NormInput>(o, 0);
  made.epsilon = static_cast<float>(o.attributeOr<double>("epsilon", 0));
  return made;
}

NormInput bound(NormInput input, const KernelArguments& a) {
  input.x = in(a, 0);
  input.scale = in(a, 1);
  input.offset = in(a, 2);
  return input;
}

constexpr auto kOverwritesX = [](int output, int input) { return output == 0 && input == 0; };

float* sumsIn(const KernelArguments& a) {
  return reinterpret_cast<float*>(a.workspace);
}

KernelFactory batchNormKernel(const Processor& cpu) {
  return [cpu](const Operation& o) {
    const NormInput input = inputOf(o);
    const auto run = [cpu, input](const KernelArguments& a) {
      batchNorm(cpu, bound(input, a), {out(a, 0), out(a, 1), out(a, 2), out(a, 3)}, sumsIn(a));
    };
    return makeKernel(run, kOverwritesX, normSumsBytes(input.rows, input.channels));
  };
}

KernelFactory batchNormInferenceKernel(const Processor& cpu) {
  return [cpu](const Operation& o) {
    const auto run = [cpu, input = inputOf(o)](const KernelArguments& a) {
      batchNormInference(cpu, bound(input, a), in(a, 3), in(a, 4), out(a, 0));
    };
    return makeKernel(run, kOverwritesX);
  };
}

KernelFactory layerNormKernel(const Processor& cpu) {
  return [cpu](const Operation& o) {
    const auto run = [cpu, input = inputOf(o)](const KernelArguments& a) {
      layerNorm(cpu, bound(input, a), {out(a, 0), out(a, 1), nullptr, out(a, 2)});
    };
    return makeKernel(run, kOverwritesX);
  };
}

KernelFactory normGrad(const Processor& cpu,
                       void (*gradient)(const Processor&, const NormGradient&, float*)) {
  return [cpu, gradient](const Operation& o) {
    const auto sizes = sized<NormGradient>(o, 1);
    const auto run = [cpu, gradient, sizes](const KernelArguments& a) {
      NormGradient g = sizes;
      g.dy = in(a, 0), g.x = in(a, 1), g.scale = in(a, 2);
      g.mean = in(a, 3), g.inverse = in(a, 4);
      g.dx = out(a, 0), g.dscale = out(a, 1), g.doffset = out(a, 2);
      gradient(cpu, g, sumsIn(a));
    };
    return makeKernel(run, kOverwritesX, normSumsBytes(sizes.rows, sizes.channels));
  };
}

}  // namespace

void addNormKernels(KernelTable& table, const Processor& cpu) {
  table.add("FusedBatchNorm", DeviceType::kCpu, batchNormKernel(cpu));
  table.add("FusedBatchNormInference", DeviceType::kCpu, batchNormInferenceKernel(cpu));
  table.add("FusedBatchNormGrad", DeviceType::kCpu, normGrad(cpu, batchNormGrad));
  table.add("LayerNorm", DeviceType::kCpu, layerNormKernel(cpu));
  table.add("LayerNormGrad", DeviceType::kCpu, normGrad(cpu, layerNormGrad));
}

}  // namespace dtf::runtime
