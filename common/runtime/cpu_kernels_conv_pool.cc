// The first layers of fusion.h: a few images at a time, so that what the convolution makes, or what goes
// back into it, stays in the second cache.

#include <algorithm>

#include "common/base/check.h"
#include "common/runtime/convolution_ways.h"
#include "common/runtime/cpu_kernels_internal.h"
#include "common/runtime/fusion.h"
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

// A layer, `images` at a time. Value type.
struct Layer {
  Layer(const Shape& x, const Shape& filter, const Shape& y, const Operation& o,
        ConvolutionPass pass, bool winograd) {
    const graph::Attributes attributes = convolutionAttributesOf(o);
    const graph::Window window = graph::convolutionWindow(attributes, filter);
    const Shape convolved = {x.dim(0), window.height.positions(x.dim(1)),
                             window.width.positions(x.dim(2)), filter.dim(3)};
    convolution = Convolution::of(x, filter, convolved, attributes);
    pooling = Pooling::of(convolved, y, o.attributes);
    way = &fastestWay(pass, convolution, winograd);
    const int64_t one = convolved.dim(1) * convolved.dim(2) * convolved.dim(3);
    images = std::max<int64_t>(1, kImagesFloats / std::max<int64_t>(1, one));
  }

  // Calls f(layer of the images [first, first + layer.convolution.batch), first).
  template <class F>
  void forEach(const F& f) const {
    for (int64_t first = 0; first < convolution.batch; first += images) {
      Layer some = *this;
      some.convolution.batch = some.pooling.batch = std::min(images, convolution.batch - first);
      f(some, first);
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

std::unique_ptr<Kernel> forwardKernel(const Operation& o, Isa isa, bool winograd) {
  const Layer layer(o.input_specs[0].shape, o.input_specs[1].shape, o.output_specs[0].shape, o,
                    ConvolutionPass::kForward, winograd);
  const size_t convolved = alignedBytes(layer.largest().outElements());
  const auto run = [isa, layer, convolved, &loops = poolingLoops(isa)](const KernelArguments& a) {
    float* const between = reinterpret_cast<float*>(a.workspace);
    layer.forEach([&](const Layer& some, int64_t first) {
      some.way->forward(isa, some.convolution, in(a, 0) + first * some.imageFloats(), in(a, 1),
                        between, a.workspace + convolved);
      const int64_t pooled = first * some.pooledFloats();
      loops.biasReluMaxPool(some.pooling, between, in(a, 2), out(a, 0) + pooled,
                            out<uint8_t>(a, 1) + pooled);
    });
  };
  return makeKernel(run, kOverwritesNothing,
                    convolved + layer.way->workspaceBytes(isa, layer.largest()));
}

std::unique_ptr<Kernel> gradientKernel(const Operation& o, Isa isa, bool winograd) {
  const Layer layer(o.input_specs[2].shape, o.output_specs[0].shape, o.input_specs[0].shape, o,
                    ConvolutionPass::kBackpropFilter, winograd);
  const size_t between_bytes = alignedBytes(layer.largest().outElements());
  const int64_t taps = layer.convolution.filterElements();
  const size_t own_bytes = between_bytes + alignedBytes(taps);
  const bool bias = o.attributeOr<bool>("bias_gradient", false);
  const auto run = [=, &loops = poolingLoops(isa),
                    add = vectorLoops(isa).add](const KernelArguments& a) {
    float* const between = reinterpret_cast<float*>(a.workspace);
    float* const part = reinterpret_cast<float*>(a.workspace + between_bytes);
    std::fill_n(out(a, 0), taps, 0.0f);
    layer.forEach([&](const Layer& some, int64_t first) {
      const int64_t pooled = first * some.pooledFloats();
      loops.maxPoolGrad(some.pooling, in(a, 0) + pooled, in<uint8_t>(a, 1) + pooled, between);
      some.way->backpropFilter(isa, some.convolution, in(a, 2) + first * some.imageFloats(),
                               between, part, a.workspace + own_bytes);
      add(out(a, 0), part, out(a, 0), taps);
    });
    if (bias) loops.openGradSum(layer.pooling, in(a, 0), in<uint8_t>(a, 1), out(a, 1));
  };
  return makeKernel(run, kOverwritesNothing,
                    own_bytes + layer.way->workspaceBytes(isa, layer.largest()));
}

}  // namespace

void addConvPoolKernels(KernelTable& table, Isa isa, bool winograd) {
  table.add(std::string(kFusedConvPoolOp), DeviceType::kCpu,
            [isa, winograd](const Operation& o) { return forwardKernel(o, isa, winograd); });
  table.add(std::string(kFusedConvPoolGradOp), DeviceType::kCpu,
            [isa, winograd](const Operation& o) { return gradientKernel(o, isa, winograd); });
}

}  // namespace dtf::runtime
