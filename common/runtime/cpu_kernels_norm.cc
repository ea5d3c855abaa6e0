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

KernelFactory batchNorm(const NormLoops& loops) {
  return [&loops](const Operation& o) {
    const auto run = [&loops, input = inputOf(o)](const KernelArguments& a) {
      loops.batch(bound(input, a), {out(a, 0), out(a, 1), out(a, 2), out(a, 3)});
    };
    return makeKernel(run, kOverwritesX);
  };
}

KernelFactory batchNormInference(const NormLoops& loops) {
  return [&loops](const Operation& o) {
    const auto run = [&loops, input = inputOf(o)](const KernelArguments& a) {
      loops.batchInference(bound(input, a), in(a, 3), in(a, 4), out(a, 0));
    };
    return makeKernel(run, kOverwritesX);
  };
}

KernelFactory layerNorm(const NormLoops& loops) {
  return [&loops](const Operation& o) {
    const auto run = [&loops, input = inputOf(o)](const KernelArguments& a) {
      loops.layer(bound(input, a), {out(a, 0), out(a, 1), nullptr, out(a, 2)});
    };
    return makeKernel(run, kOverwritesX);
  };
}

KernelFactory normGrad(void (*loop)(const NormGradient&)) {
  return [loop](const Operation& o) {
    const auto run = [loop, sizes = sized<NormGradient>(o, 1)](const KernelArguments& a) {
      NormGradient g = sizes;
      g.dy = in(a, 0), g.x = in(a, 1), g.scale = in(a, 2);
      g.mean = in(a, 3), g.inverse = in(a, 4);
      g.dx = out(a, 0), g.dscale = out(a, 1), g.doffset = out(a, 2);
      loop(g);
    };
    return makeKernel(run, kOverwritesX);
  };
}

}  // namespace

void addNormKernels(KernelTable& table, Isa isa) {
  const NormLoops& loops = normLoops(isa);
  table.add("FusedBatchNorm", DeviceType::kCpu, batchNorm(loops));
  table.add("FusedBatchNormInference", DeviceType::kCpu, batchNormInference(loops));
  table.add("FusedBatchNormGrad", DeviceType::kCpu, normGrad(loops.batchGrad));
  table.add("LayerNorm", DeviceType::kCpu, layerNorm(loops));
  table.add("LayerNormGrad", DeviceType::kCpu, normGrad(loops.layerGrad));
}

}  // namespace dtf::runtime
