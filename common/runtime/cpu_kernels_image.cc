// Convolutions and pooling; the semantics are in graph/standard_image_ops.cc.

#include "common/runtime/convolution_ways.h"
#include "common/runtime/cpu_kernels_internal.h"
#include "common/runtime/fusion.h"
#include "common/runtime/pooling.h"

namespace dtf::runtime {
namespace {

struct ConvolutionChoice {
  Processor cpu;
  bool winograd;
};

const Shape& inShape(const Operation& o, size_t index) {
  return o.input_specs[index].shape;
}
const Shape& outShape(const Operation& o, size_t index = 0) {
  return o.output_specs[index].shape;
}

// `c` for one pass by the fastest way.
std::unique_ptr<Kernel> convolutionKernel(const Convolution& c, ConvolutionPass pass,
                                          const ConvolutionChoice& choice) {
  const ConvolutionWay& way = fastestWay(pass, c, choice.winograd);
  const auto run = [c, cpu = choice.cpu, pass_run = way.run(pass)](const KernelArguments& a) {
    pass_run(cpu, c, in(a, 0), in(a, 1), out(a, 0), a.workspace);
  };
  return makeKernel(run, kOverwritesNothing, way.workspaceBytes(choice.cpu, c));
}

std::unique_ptr<Kernel> conv2D(const Operation& o, const ConvolutionChoice& choice) {
  const auto c = Convolution::of(inShape(o, 0), inShape(o, 1), outShape(o), o.attributes);
  return convolutionKernel(c, ConvolutionPass::kForward, choice);
}

std::unique_ptr<Kernel> conv2DBackpropInput(const Operation& o, const ConvolutionChoice& choice) {
  const auto c = Convolution::of(outShape(o), inShape(o, 0), inShape(o, 1), o.attributes);
  return convolutionKernel(c, ConvolutionPass::kBackpropInput, choice);
}

std::unique_ptr<Kernel> conv2DBackpropFilter(const Operation& o, const ConvolutionChoice& choice) {
  const auto c = Convolution::of(inShape(o, 0), outShape(o), inShape(o, 1), o.attributes);
  return convolutionKernel(c, ConvolutionPass::kBackpropFilter, choice);
}

std::unique_ptr<Kernel> maxPool(const Operation& o, const PoolingLoops& loops) {
  const Pooling p = Pooling::of(inShape(o, 0), outShape(o), o.attributes);
  const bool bytes = o.output_specs[1].dtype == DType::kUInt8;
  const auto run = [p, bytes, &loops](const KernelArguments& a) {
    if (bytes) return loops.maxPool(p, in(a, 0), out(a, 0), out<uint8_t>(a, 1));
    loops.maxPoolWide(p, in(a, 0), out(a, 0), out<int32_t>(a, 1));
  };
  return makeKernel(run, kOverwritesNothing);
}

std::unique_ptr<Kernel> maxPoolGrad(const Operation& o, const PoolingLoops& loops) {
  const Pooling p = Pooling::of(outShape(o), inShape(o, 0), o.attributes);
  const bool bytes = o.input_specs[1].dtype == DType::kUInt8;
  const auto run = [p, bytes, &loops](const KernelArguments& a) {
    if (bytes) return loops.maxPoolGrad(p, in(a, 0), in<uint8_t>(a, 1), out(a, 0));
    loops.maxPoolGradWide(p, in(a, 0), in<int32_t>(a, 1), out(a, 0));
  };
  return makeKernel(run, kOverwritesNothing);
}

std::unique_ptr<Kernel> fusedPool(const Operation& o, const PoolingLoops& loops) {
  const Pooling p = Pooling::of(inShape(o, 0), outShape(o), o.attributes);
  const auto run = [p, &loops](const KernelArguments& a) {
    loops.biasReluMaxPool(p, in(a, 0), in(a, 1), out(a, 0), out<uint8_t>(a, 1));
  };
  return makeKernel(run, kOverwritesNothing);
}

std::unique_ptr<Kernel> fusedPoolGrad(const Operation& o, const PoolingLoops& loops) {
  const Pooling p = Pooling::of(outShape(o), inShape(o, 0), o.attributes);
  const bool bias = o.attributeOr<bool>("bias_gradient", false);
  const auto run = [p, bias, &loops](const KernelArguments& a) {
    loops.biasReluMaxPoolGrad(p, in(a, 0), in<uint8_t>(a, 1), out(a, 0),
                              bias ? out(a, 1) : nullptr);
  };
  return makeKernel(run, kOverwritesNothing);
}

std::unique_ptr<Kernel> avgPool(const Operation& o, const PoolingLoops& loops) {
  const Pooling p = Pooling::of(inShape(o, 0), outShape(o), o.attributes);
  const auto run = [p, &loops](const KernelArguments& a) { loops.avgPool(p, in(a, 0), out(a, 0)); };
  return makeKernel(run, kOverwritesNothing);
}

std::unique_ptr<Kernel> avgPoolGrad(const Operation& o, const PoolingLoops& loops) {
  const Pooling p = Pooling::of(outShape(o), inShape(o, 0), o.attributes);
  const auto run = [p, &loops](const KernelArguments& a) {
    loops.avgPoolGrad(p, in(a, 0), out(a, 0));
  };
  return makeKernel(run, kOverwritesNothing);
}

}  // namespace

void addImageKernels(KernelTable& table, const Processor& cpu, bool winograd) {
  // `second` is what the factory needs besides the operation.
  const auto add = [&table](std::string_view op, auto factory, auto second) {
    table.add(std::string(op), DeviceType::kCpu,
              [factory, second](const Operation& o) { return factory(o, second); });
  };
  const ConvolutionChoice choice = {cpu, winograd};
  add("Conv2D", conv2D, choice);
  add("Conv2DBackpropInput", conv2DBackpropInput, choice);
  add("Conv2DBackpropFilter", conv2DBackpropFilter, choice);
  const auto loops = std::cref(poolingLoops(cpu.isa));
  add("MaxPool", maxPool, loops);
  add("MaxPoolGrad", maxPoolGrad, loops);
  add(kFusedPoolOp, fusedPool, loops);
  add(kFusedPoolGradOp, fusedPoolGrad, loops);
  add("AvgPool", avgPool, loops);
  add("AvgPoolGrad", avgPoolGrad, loops);
}

}  // namespace dtf::runtime
