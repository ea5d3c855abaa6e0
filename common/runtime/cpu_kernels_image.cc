// Convolutions and pooling; the semantics are in graph/standard_image_ops.cc.

#include <algorithm>

#include "common/runtime/convolution_ways.h"
#include "common/runtime/cpu_kernels_internal.h"
#include "common/runtime/fusion.h"
#include "common/runtime/pooling.h"

namespace dtf::runtime {
namespace {

struct ConvolutionChoice {
  Processor cpu;
  ConvolutionRule rule;
};

const Shape& inShape(const Operation& o, size_t index) {
  return o.input_specs[index].shape;
}
const Shape& outShape(const Operation& o, size_t index = 0) {
  return o.output_specs[index].shape;
}

// Makes the kernel of one pass of `c`, in the way that the rule chooses.
std::unique_ptr<Kernel> convolutionKernel(const Operation& o, const Convolution& c,
                                          ConvolutionPass pass, const ConvolutionChoice& choice) {
  const ChosenWay chosen = chosenWay(choice.rule, pass, c, processorOf(o, choice.cpu));
  const auto run = [c, cpu = chosen.cpu,
                    pass_run = chosen.way.run(pass)](const KernelArguments& a) {
    pass_run(cpu, c, in(a, 0), in(a, 1), out(a, 0), a.workspace);
  };
  return makeKernel(run, kOverwritesNothing, chosen.way.workspaceBytes(chosen.cpu, c),
                    chosen.way.name);
}

std::unique_ptr<Kernel> conv2D(const Operation& o, const ConvolutionChoice& choice) {
  const auto c = Convolution::of(inShape(o, 0), inShape(o, 1), outShape(o), o.attributes);
  return convolutionKernel(o, c, ConvolutionPass::kForward, choice);
}

std::unique_ptr<Kernel> conv2DBackpropInput(const Operation& o, const ConvolutionChoice& choice) {
  const auto c = Convolution::of(outShape(o), inShape(o, 0), inShape(o, 1), o.attributes);
  return convolutionKernel(o, c, ConvolutionPass::kBackpropInput, choice);
}

std::unique_ptr<Kernel> conv2DBackpropFilter(const Operation& o, const ConvolutionChoice& choice) {
  const auto c = Convolution::of(inShape(o, 0), outShape(o), inShape(o, 1), o.attributes);
  return convolutionKernel(o, c, ConvolutionPass::kBackpropFilter, choice);
}

struct PoolingChoice {
  Processor cpu;
  const PoolingLoops& loops;
};

// Calls f(pooling of some images, offset in the image, offset in the pooled image).
template <class F>
void forImages(const Processor& cpu, const Pooling& p, const F& f) {
  const int64_t image = p.height * p.width * p.channels;
  const int64_t pooled = p.out_height * p.out_width * p.channels;
  const int64_t work = saturatedProduct({pooled, std::min(p.window_height, p.height),
                                         std::min(p.window_width, p.width), kCopiedWork});
  cpu.forRanges(p.batch, std::max<int64_t>(1, work), [&](int64_t begin, int64_t end, int) {
    Pooling some = p;
    some.batch = end - begin;
    f(some, begin * image, begin * pooled);
  });
}

std::unique_ptr<Kernel> maxPool(const Operation& o, const PoolingChoice& choice) {
  const Pooling p = Pooling::of(inShape(o, 0), outShape(o), o.attributes);
  const bool bytes = o.output_specs[1].dtype == DType::kUInt8;
  const auto run = [p, bytes, choice](const KernelArguments& a) {
    forImages(choice.cpu, p, [&](const Pooling& some, int64_t x, int64_t y) {
      if (bytes) {
        choice.loops.maxPool(some, in(a, 0) + x, out(a, 0) + y, out<uint8_t>(a, 1) + y);
      } else {
        choice.loops.maxPoolWide(some, in(a, 0) + x, out(a, 0) + y, out<int32_t>(a, 1) + y);
      }
    });
  };
  return makeKernel(run, kOverwritesNothing);
}

std::unique_ptr<Kernel> maxPoolGrad(const Operation& o, const PoolingChoice& choice) {
  const Pooling p = Pooling::of(outShape(o), inShape(o, 0), o.attributes);
  const bool bytes = o.input_specs[1].dtype == DType::kUInt8;
  const auto run = [p, bytes, choice](const KernelArguments& a) {
    forImages(choice.cpu, p, [&](const Pooling& some, int64_t x, int64_t y) {
      if (bytes) {
        choice.loops.maxPoolGrad(some, in(a, 0) + y, in<uint8_t>(a, 1) + y, out(a, 0) + x);
      } else {
        choice.loops.maxPoolGradWide(some, in(a, 0) + y, in<int32_t>(a, 1) + y, out(a, 0) + x);
      }
    });
  };
  return makeKernel(run, kOverwritesNothing);
}

std::unique_ptr<Kernel> fusedPool(const Operation& o, const PoolingChoice& choice) {
  const Pooling p = Pooling::of(inShape(o, 0), outShape(o), o.attributes);
  const auto run = [p, choice](const KernelArguments& a) {
    forImages(choice.cpu, p, [&](const Pooling& some, int64_t x, int64_t y) {
      choice.loops.biasReluMaxPool(some, in(a, 0) + x, in(a, 1), out(a, 0) + y,
                                   out<uint8_t>(a, 1) + y);
    });
  };
  return makeKernel(run, kOverwritesNothing);
}

// Elements blocked by the relu are numbered 255, which no element of a window has.
std::unique_ptr<Kernel> fusedPoolGrad(const Operation& o, const PoolingChoice& choice) {
  const Pooling p = Pooling::of(outShape(o), inShape(o, 0), o.attributes);
  const bool bias = o.attributeOr<bool>("bias_gradient", false);
  const auto run = [p, bias, choice](const KernelArguments& a) {
    forImages(choice.cpu, p, [&](const Pooling& some, int64_t x, int64_t y) {
      choice.loops.maxPoolGrad(some, in(a, 0) + y, in<uint8_t>(a, 1) + y, out(a, 0) + x);
    });
    if (bias) sumOpenGradients(choice.cpu, p, a);
  };
  return makeKernel(run, kOverwritesNothing);
}

std::unique_ptr<Kernel> avgPool(const Operation& o, const PoolingChoice& choice) {
  const Pooling p = Pooling::of(inShape(o, 0), outShape(o), o.attributes);
  const auto run = [p, choice](const KernelArguments& a) {
    forImages(choice.cpu, p, [&](const Pooling& some, int64_t x, int64_t y) {
      choice.loops.avgPool(some, in(a, 0) + x, out(a, 0) + y);
    });
  };
  return makeKernel(run, kOverwritesNothing);
}

std::unique_ptr<Kernel> avgPoolGrad(const Operation& o, const PoolingChoice& choice) {
  const Pooling p = Pooling::of(outShape(o), inShape(o, 0), o.attributes);
  const auto run = [p, choice](const KernelArguments& a) {
    forImages(choice.cpu, p, [&](const Pooling& some, int64_t x, int64_t y) {
      choice.loops.avgPoolGrad(some, in(a, 0) + y, out(a, 0) + x);
    });
  };
  return makeKernel(run, kOverwritesNothing);
}

}  // namespace

void sumOpenGradients(const Processor& cpu, const Pooling& p, const KernelArguments& a) {
  const auto sum = poolingLoops(cpu.isa).openGradSum;
  const Rows all(Shape{p.batch * p.out_height * p.out_width, p.channels});
  forColumns(cpu, all, kCopiedWork, [&](int64_t begin, int64_t channels) {
    sum(p, begin, begin + channels, in(a, 0), in<uint8_t>(a, 1), out(a, 1));
  });
}

void addImageKernels(KernelTable& table, const Processor& cpu, const ConvolutionRule& rule) {
  // `second` is the factory's second argument.
  const auto add = [&table](std::string_view op, auto factory, auto second) {
    table.add(std::string(op), DeviceType::kCpu,
              [factory, second](const Operation& o) { return factory(o, second); });
  };
  const ConvolutionChoice choice = {cpu, rule};
  add("Conv2D", conv2D, choice);
  add("Conv2DBackpropInput", conv2DBackpropInput, choice);
  add("Conv2DBackpropFilter", conv2DBackpropFilter, choice);
  const PoolingChoice loops = {cpu, poolingLoops(cpu.isa)};
  add("MaxPool", maxPool, loops);
  add("MaxPoolGrad", maxPoolGrad, loops);
  add(kFusedPoolOp, fusedPool, loops);
  add(kFusedPoolGradOp, fusedPoolGrad, loops);
  add("AvgPool", avgPool, loops);
  add("AvgPoolGrad", avgPoolGrad, loops);
}

}  // namespace dtf::runtime
