// Arithmetic by element and by row; the semantics are in graph/standard_math_ops.cc.

#include <algorithm>
#include <cstring>

#include "common/runtime/cpu_kernels.h"
#include "common/runtime/cpu_kernels_internal.h"

namespace dtf::runtime {
namespace {

int64_t outputElements(const Operation& operation) {
  return operation.output_specs[0].shape.elements();
}

std::unique_ptr<Kernel> copyKernel(const Operation& o) {
  const size_t bytes = static_cast<size_t>(outputElements(o)) * dtypeBytes(o.output_specs[0].dtype);
  const auto copy = [bytes](const KernelArguments& a) {
    if (bytes != 0 && a.outputs[0] != a.inputs[0]) std::memcpy(a.outputs[0], a.inputs[0], bytes);
  };
  return makeKernel(copy, kOverwritesAny);
}

KernelFactory unary(VectorLoops::Unary loop) {
  return [loop](const Operation& o) {
    const auto run = [loop, n = outputElements(o)](const KernelArguments& a) {
      loop(in(a, 0), out(a, 0), n);
    };
    return makeKernel(run, kOverwritesAny);
  };
}

KernelFactory binary(VectorLoops::Binary loop) {
  return [loop](const Operation& o) {
    const auto run = [loop, n = outputElements(o)](const KernelArguments& a) {
      loop(in(a, 0), in(a, 1), out(a, 0), n);
    };
    return makeKernel(run, kOverwritesAny);
  };
}

// With a number that is the attribute `key`.
KernelFactory unaryWith(void (*loop)(const float*, float, float*, int64_t), const char* key) {
  return [loop, key](const Operation& o) {
    const auto number = static_cast<float>(o.attributeOr<double>(key, 0));
    const auto run = [loop, number, n = outputElements(o)](const KernelArguments& a) {
      loop(in(a, 0), number, out(a, 0), n);
    };
    return makeKernel(run, kOverwritesAny);
  };
}

KernelFactory binaryWith(void (*loop)(const float*, const float*, float, float*, int64_t),
                         const char* key) {
  return [loop, key](const Operation& o) {
    const auto number = static_cast<float>(o.attributeOr<double>(key, 0));
    const auto run = [loop, number, n = outputElements(o)](const KernelArguments& a) {
      loop(in(a, 0), in(a, 1), number, out(a, 0), n);
    };
    return makeKernel(run, kOverwritesAny);
  };
}

KernelFactory normalise(const VectorLoops& loops) {
  return [loop = loops.normalise](const Operation& o) {
    const auto scale = static_cast<float>(o.attributeOr<double>("scale", 1));
    const auto run = [loop, scale, n = outputElements(o)](const KernelArguments& a) {
      loop(in<uint8_t>(a, 0), scale, out(a, 0), n);
    };
    return makeKernel(run, kOverwritesNothing);
  };
}

KernelFactory scale(const VectorLoops& loops) {
  return [loop = loops.scale](const Operation& o) {
    const auto factor = static_cast<float>(o.attributeOr<double>("factor", 1));
    const auto run = [loop, factor, n = outputElements(o)](const KernelArguments& a) {
      loop(in(a, 0), factor, out(a, 0), n);
    };
    return makeKernel(run, kOverwritesAny);
  };
}

// From left to right. The third and later terms are read after the output has been written.
KernelFactory addN(const VectorLoops& loops) {
  return [add = loops.add](const Operation& o) -> std::unique_ptr<Kernel> {
    if (o.input_specs.size() == 1) return copyKernel(o);
    const auto run = [add, n = outputElements(o)](const KernelArguments& a) {
      add(in(a, 0), in(a, 1), out(a, 0), n);
      for (size_t i = 2; i < a.inputs.size(); ++i) add(out(a, 0), in(a, i), out(a, 0), n);
    };
    return makeKernel(run, [](int, int input) { return input < 2; });
  };
}

KernelFactory mean(const VectorLoops& loops) {
  return [sum = loops.sum](const Operation& o) {
    const auto run = [sum, n = o.input_specs[0].shape.elements()](const KernelArguments& a) {
      *out(a, 0) = static_cast<float>(sum(in(a, 0), n) / static_cast<double>(n));
    };
    return makeKernel(run, kOverwritesNothing);
  };
}

std::unique_ptr<Kernel> meanGradKernel(const Operation& o) {
  const auto run = [n = outputElements(o)](const KernelArguments& a) {
    std::fill_n(out(a, 0), n, *in(a, 0) / static_cast<float>(n));
  };
  return makeKernel(run, kOverwritesNothing);
}

// Ops on rows with two inputs.
using RowLoop = void (*)(const float*, const float*, float*, int64_t, int64_t);
template <class Overwrites>
KernelFactory byRow(RowLoop loop, Overwrites overwrites) {
  return [loop, overwrites](const Operation& o) {
    const auto run = [loop, n = Rows(o.output_specs[0].shape)](const KernelArguments& a) {
      loop(in(a, 0), in(a, 1), out(a, 0), n.rows, n.columns);
    };
    return makeKernel(run, overwrites);
  };
}

KernelFactory biasAddGrad(const VectorLoops& loops) {
  return [loop = loops.biasAddGrad](const Operation& o) {
    const auto run = [loop, n = Rows(o.input_specs[0].shape)](const KernelArguments& a) {
      loop(in(a, 0), out(a, 0), n.rows, n.columns);
    };
    return makeKernel(run, kOverwritesNothing);
  };
}

}  // namespace

void addMathKernels(KernelTable& table, const VectorLoops& loops) {
  const auto add = [&table](const char* op, KernelFactory factory) {
    table.add(op, DeviceType::kCpu, std::move(factory));
  };
  add("Identity", copyKernel);
  add("Reshape", copyKernel);
  add("Normalise", normalise(loops));
  add("Add", binary(loops.add));
  add("Sub", binary(loops.sub));
  add("Mul", binary(loops.mul));
  add("SquaredDifference", binary(loops.squaredDifference));
  add("Scale", scale(loops));
  add("AddN", addN(loops));
  add("Mean", mean(loops));
  add("MeanGrad", meanGradKernel);
  add("BiasAdd", byRow(loops.biasAdd, [](int, int input) { return input == 0; }));
  add("BiasAddGrad", biasAddGrad(loops));
  add("MulRows", byRow(loops.mulRows, [](int, int input) { return input == 1; }));
  add("Abs", unary(loops.abs));
  add("AbsGrad", binary(loops.absGrad));
  add("Relu6", unary(loops.relu6));
  add("Relu6Grad", binary(loops.relu6Grad));
  add("Elu", unary(loops.elu));
  add("EluGrad", binary(loops.eluGrad));
  add("Silu", unary(loops.silu));
  add("SiluGrad", binary(loops.siluGrad));
  add("Softplus", unary(loops.softplus));
  add("SoftplusGrad", binary(loops.softplusGrad));
  add("LeakyRelu", unaryWith(loops.leakyRelu, "alpha"));
  add("LeakyReluGrad", binaryWith(loops.leakyReluGrad, "alpha"));
  add("Huber", unaryWith(loops.huber, "delta"));
  add("HuberGrad", binaryWith(loops.huberGrad, "delta"));
  add("Gelu", [&loops](const Operation& o) {
    return unary(o.attributeOr<bool>("approximate", false) ? loops.geluApproximate : loops.gelu)(o);
  });
  add("GeluGrad", [&loops](const Operation& o) {
    return binary(o.attributeOr<bool>("approximate", false) ? loops.geluApproximateGrad
                                                            : loops.geluGrad)(o);
  });
  add("Relu", unary(loops.relu));
  add("Sigmoid", unary(loops.sigmoid));
  add("Tanh", unary(loops.tanh));
  add("ReluGrad", binary(loops.reluGrad));
  add("SigmoidGrad", binary(loops.sigmoidGrad));
  add("TanhGrad", binary(loops.tanhGrad));
  add("SigmoidCrossEntropyWithLogits", binary(loops.sigmoidCrossEntropy));
  add("SoftmaxGrad", byRow(loops.softmaxGrad, kOverwritesAny));
}

void registerCpuKernels(KernelTable& table, const Processor& cpu, bool winograd) {
  const VectorLoops& loops = vectorLoops(cpu.isa);
  addMathKernels(table, loops);
  addNnKernels(table, loops);
  addArrayKernels(table, loops);
  addNormKernels(table, cpu.isa);
  addImageKernels(table, cpu, winograd);
  addConvPoolKernels(table, cpu, winograd);
  addMatMulKernel(table, cpu);
  addFusedKernels(table, cpu.isa);
}

}  // namespace dtf::runtime
