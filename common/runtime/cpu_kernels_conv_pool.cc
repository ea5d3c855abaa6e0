// The first layers of fusion.h: a few images at a time, so that the tensor between convolution and
// pooling stays in the second cache.

#include <algorithm>

#include "common/base/check.h"
#include "common/runtime/convolution_ways.h"
#include "common/runtime/cpu_kernels_internal.h"
#include "common/runtime/fusion.h"
#include "common/runtime/ordered_sum.h"
#include "common/runtime/pooling.h"

namespace dtf::runtime {
namespace {

constexpr int64_t kImagesFloats = 64 * 1024;  // of the convolution's output, at a time

graph::Attributes convolutionAttributesOf(const Operation& o) {
  graph::Attributes attributes;
  for (const auto& [name, value] : o.attributes) {
    if (name.starts_with(kFusedConvPrefix)) {
      attributes[name.substr(kFusedConvPrefix.size())] = value;
    }
  }
  return attributes;
}

size_t alignedBytes(int64_t floats) {
  return static_cast<size_t>((floats + 15) / 16 * 16) * sizeof(float);
}

// A layer; one thread convolves `images` images at a time. Value type.
struct Layer {
  Layer(const Shape& x, const Shape& filter, const Shape& y, const Operation& o) {
    const graph::Attributes attributes = convolutionAttributesOf(o);
    const graph::Window window = graph::convolutionWindow(attributes, filter);
    const Shape convolved = {x.dim(0), window.height.positions(x.dim(1)),
                             window.width.positions(x.dim(2)), filter.dim(3)};
    convolution = Convolution::of(x, filter, convolved, attributes);
    pooling = Pooling::of(convolved, y, o.attributes);
    const int64_t one = convolved.dim(1) * convolved.dim(2) * convolved.dim(3);
    images = std::max<int64_t>(1, kImagesFloats / std::max<int64_t>(1, one));
  }

  int64_t chunks() const { return (convolution.batch + images - 1) / images; }
  int64_t chunkWork() const {
    const Convolution c = largest();
    return std::max<int64_t>(1, c.outElements() * c.taps() * kMultiplyAddWork);
  }

  // Calls f(layer of the images [first, first + layer.convolution.batch), first, chunk) for chunks.
  template <class F>
  void forEach(int64_t begin, int64_t end, const F& f) const {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t first = chunk * images;
      Layer some = *this;
      some.convolution.batch = some.pooling.batch = std::min(images, convolution.batch - first);
      f(some, first, chunk);
    }
  }

  Convolution largest() const {
    Convolution c = convolution;
    c.batch = std::min(c.batch, images);
    return c;
  }
  int64_t imageFloats() const {
    return convolution.height * convolution.width * convolution.channels;
  }
  int64_t pooledFloats() const { return pooling.out_height * pooling.out_width * pooling.channels; }

  Convolution convolution;
  Pooling pooling;
  const ConvolutionWay* way = nullptr;
  int64_t images = 1;
};

std::unique_ptr<Kernel> forwardKernel(const Operation& o, const Processor& cpu,
                                      const ConvolutionRule& rule) {
  Layer layer(o.input_specs[0].shape, o.input_specs[1].shape, o.output_specs[0].shape, o);
  layer.way = &rule(ConvolutionPass::kForward, layer.largest(), cpu.alone());
  const size_t convolved = alignedBytes(layer.largest().outElements());
  const PerThread own(cpu, convolved + layer.way->workspaceBytes(cpu.alone(), layer.largest()));
  const auto run = [cpu, layer, convolved, own,
                    &loops = poolingLoops(cpu.isa)](const KernelArguments& a) {
    const auto some_chunks = [&](int64_t begin, int64_t end, int thread) {
      std::byte* const workspace = own.of(a.workspace, thread);
      float* const between = reinterpret_cast<float*>(workspace);
      layer.forEach(begin, end, [&](const Layer& some, int64_t first, int64_t) {
        some.way->forward(cpu.alone(), some.convolution, in(a, 0) + first * some.imageFloats(),
                          in(a, 1), between, workspace + convolved);
        const int64_t pooled = first * some.pooledFloats();
        loops.biasReluMaxPool(some.pooling, between, in(a, 2), out(a, 0) + pooled,
                              out<uint8_t>(a, 1) + pooled);
      });
    };
    cpu.forRanges(layer.chunks(), layer.chunkWork(), some_chunks);
  };
  return makeKernel(run, kOverwritesNothing, own.bytes(), layer.way->name);
}

// The gradient of the layer's filter, chunk by chunk as well. Value type; immutable.
class LayerGradient {
 public:
  LayerGradient(const Layer& layer, const Processor& cpu)
      : layer_(layer),
        cpu_(cpu),
        taps_(layer.convolution.filterElements()),
        between_(alignedBytes(layer.largest().outElements())),
        own_(cpu, between_ + layer.way->workspaceBytes(cpu.alone(), layer.largest())),
        round_(
            std::min(std::max<int64_t>(cpu.threads(), kRoundFloats / std::max<int64_t>(1, taps_)),
                     layer.chunks())) {
    if (cpu.threads() == 1) round_ = std::min<int64_t>(1, layer.chunks());
  }

  size_t workspaceBytes() const { return own_.bytes() + alignedBytes(round_ * taps_); }

  // Sums the chunks' gradients in order; the chunks of one round are computed concurrently.
  void run(const KernelArguments& a) const {
    float* const gradients = reinterpret_cast<float*>(a.workspace + own_.bytes());
    std::fill_n(out(a, 0), taps_, 0.0f);
    for (int64_t first = 0; first < layer_.chunks(); first += round_) {
      const int64_t chunks = std::min(round_, layer_.chunks() - first);
      cpu_.forRanges(chunks, layer_.chunkWork(), [&](int64_t begin, int64_t end, int thread) {
        someChunks(a, first + begin, first + end, gradients + begin * taps_, thread);
      });
      addInOrder(cpu_, gradients, chunks, taps_, out(a, 0));
    }
  }

 private:
  static constexpr int64_t kRoundFloats = 256 * 1024;

  void someChunks(const KernelArguments& a, int64_t begin, int64_t end, float* gradients,
                  int thread) const {
    const PoolingLoops& loops = poolingLoops(cpu_.isa);
    std::byte* const workspace = own_.of(a.workspace, thread);
    float* const between = reinterpret_cast<float*>(workspace);
    layer_.forEach(begin, end, [&](const Layer& some, int64_t first, int64_t chunk) {
      const int64_t pooled = first * some.pooledFloats();
      loops.maxPoolGrad(some.pooling, in(a, 0) + pooled, in<uint8_t>(a, 1) + pooled, between);
      some.way->backpropFilter(cpu_.alone(), some.convolution,
                               in(a, 2) + first * some.imageFloats(), between,
                               gradients + (chunk - begin) * taps_, workspace + between_);
    });
  }

  Layer layer_;
  Processor cpu_;
  int64_t taps_;
  size_t between_;  // bytes of the convolution's gradient
  PerThread own_;
  int64_t round_;  // chunks
};

std::unique_ptr<Kernel> gradientKernel(const Operation& o, const Processor& cpu,
                                       const ConvolutionRule& rule) {
  Layer layer(o.input_specs[2].shape, o.output_specs[0].shape, o.input_specs[0].shape, o);
  layer.way = &rule(ConvolutionPass::kBackpropFilter, layer.largest(), cpu.alone());
  const LayerGradient gradient(layer, cpu);
  const bool bias = o.attributeOr<bool>("bias_gradient", false);
  const auto run = [gradient, bias, cpu, pooling = layer.pooling](const KernelArguments& a) {
    gradient.run(a);
    if (bias) sumOpenGradients(cpu, pooling, a);
  };
  return makeKernel(run, kOverwritesNothing, gradient.workspaceBytes(), layer.way->name);
}

}  // namespace

void addConvPoolKernels(KernelTable& table, const Processor& cpu, const ConvolutionRule& rule) {
  table.add(std::string(kFusedConvPoolOp), DeviceType::kCpu,
            [cpu, rule](const Operation& o) { return forwardKernel(o, cpu, rule); });
  table.add(std::string(kFusedConvPoolGradOp), DeviceType::kCpu,
            [cpu, rule](const Operation& o) { return gradientKernel(o, cpu, rule); });
}

}  // namespace dtf::runtime
