// Normalisation; the semantics are in graph/standard_norm_ops.cc.

#include "common/runtime/cpu_kernels_internal.h"
#include "common/runtime/fusion.h"
#include "common/runtime/norm_loops.h"

namespace dtf::runtime {
namespace {

// Returns the sizes of x, the input `x` of the operation.
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

// fusion.h: x, scale, offset [, residual].
KernelFactory batchNormReluKernel(const Processor& cpu) {
  return [cpu](const Operation& o) {
    NormInput input = inputOf(o);
    input.relu = true;
    const bool adds = o.input_specs.size() > 3;
    const auto run = [cpu, input, adds](const KernelArguments& a) {
      NormInput with = bound(input, a);
      if (adds) with.residual = in(a, 3);
      batchNorm(cpu, with, {out(a, 0), out(a, 1), out(a, 2), out(a, 3)}, sumsIn(a));
    };
    const auto overwrites = [](int output, int given) {
      return output == 0 && (given == 0 || given == 3);
    };
    return makeKernel(run, overwrites, normSumsBytes(input.rows, input.channels));
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

// fusion.h: scale, mean, inverse, offset, x [, y], dy [, its second term].
KernelFactory batchNormReluGrad(const Processor& cpu) {
  constexpr size_t kX = 4;
  return [cpu](const Operation& o) {
    auto sizes = sized<NormGradient>(o, kX);
    const bool from_x = o.attributeOr<bool>("mask_from_x", false);
    sizes.mask = from_x ? NormGradient::Mask::kFromX : NormGradient::Mask::kFromY;
    const size_t dy = from_x ? kX + 1 : kX + 2;
    const bool two = o.input_specs.size() > dy + 1, passes = o.output_specs.size() > 3;
    const auto run = [cpu, sizes, from_x, dy, two, passes](const KernelArguments& a) {
      NormGradient g = sizes;
      g.scale = in(a, 0), g.mean = in(a, 1), g.inverse = in(a, 2), g.offset = in(a, 3);
      g.x = in(a, kX), g.dy = in(a, dy);
      if (!from_x) g.y = in(a, kX + 1);
      if (two) g.dy_more = in(a, dy + 1);
      g.dx = out(a, 0), g.dscale = out(a, 1), g.doffset = out(a, 2);
      if (passes) g.passed = out(a, 3);
      batchNormGrad(cpu, g, sumsIn(a));
    };
    const auto overwrites = [](int output, int given) {
      return (output == 0 || output == 3) && given >= static_cast<int>(kX);
    };
    return makeKernel(run, overwrites, normSumsBytes(sizes.rows, sizes.channels));
  };
}

}  // namespace

void addNormKernels(KernelTable& table, const Processor& cpu) {
  table.add("FusedBatchNorm", DeviceType::kCpu, batchNormKernel(cpu));
  table.add(std::string(kFusedBatchNormReluOp), DeviceType::kCpu, batchNormReluKernel(cpu));
  table.add(std::string(kFusedBatchNormReluGradOp), DeviceType::kCpu, batchNormReluGrad(cpu));
  table.add("FusedBatchNormInference", DeviceType::kCpu, batchNormInferenceKernel(cpu));
  table.add("FusedBatchNormGrad", DeviceType::kCpu, normGrad(cpu, batchNormGrad));
  table.add("LayerNorm", DeviceType::kCpu, layerNormKernel(cpu));
  table.add("LayerNormGrad", DeviceType::kCpu, normGrad(cpu, layerNormGrad));
}

}  // namespace dtf::runtime
