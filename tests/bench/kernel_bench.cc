// `dtf-bench kernels`: each way to compute a convolution, and pooling, on one thread with each
// instruction set, for the layers of LeNet, ResNet-20 and ResNet-50, and MobileNet's depthwise
// ones. Convolutions are counted as the multiplications and additions of the plain sum, beside the
// rate of multiply-adds between registers (Winograd's takes fewer, so it may pass that); pooling in
// bytes read and written, beside memcpy. The other ops are in op_bench.h.

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/runtime/convolution_ways.h"
#include "common/runtime/pooling.h"
#include "common/tensor/buffer.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/fma_peak.h"
#include "tests/bench/kernel_timing.h"
#include "tests/bench/op_bench.h"

namespace dtf::bench {
namespace {

using runtime::Convolution;
using runtime::ConvolutionPass;
using runtime::ConvolutionWay;

struct Layer {
  const char* name;
  int64_t batch, side, channels, window, out_channels, stride, groups = 1;
};

constexpr Layer kLayers[] = {
    {"le_c1", 128, 28, 1, 5, 32, 1},
    {"le_c2", 128, 14, 32, 5, 64, 1},
    {"r20_0", 128, 32, 3, 3, 16, 1},
    {"r20_16", 128, 32, 16, 3, 16, 1},
    {"r20_16_32s2", 128, 32, 16, 3, 32, 2},
    {"r20_32", 128, 16, 32, 3, 32, 1},
    {"r20_64", 128, 8, 64, 3, 64, 1},
    {"r50_7x7s2", 8, 224, 3, 7, 64, 2},
    {"r50_3x3_64", 8, 56, 64, 3, 64, 1},
    {"r50_3x3_128", 8, 28, 128, 3, 128, 1},
    {"r50_3x3s2_128", 8, 56, 128, 3, 128, 2},
    {"r50_3x3_256", 8, 14, 256, 3, 256, 1},
    {"r50_3x3_512", 8, 7, 512, 3, 512, 1},
    {"r50_1x1_64_256", 8, 56, 64, 1, 256, 1},
    {"r50_1x1_256_64", 8, 56, 256, 1, 64, 1},
    {"r50_1x1_512_128", 8, 28, 512, 1, 128, 1},
    {"r50_1x1_256_1024", 8, 14, 256, 1, 1024, 1},
    {"r50_1x1_512_2048", 8, 7, 512, 1, 2048, 1},
    {"mobile_dw_32", 8, 112, 32, 3, 32, 1, 32},
    {"mobile_dw_128s2", 8, 56, 128, 3, 128, 2, 128},
    {"mobile_dw_512", 8, 14, 512, 3, 512, 1, 512},
};

// Whether the name of a row of `layer` may begin with options.only.
bool hasRows(std::string_view layer, const BenchOptions& options) {
  const size_t both = std::min(layer.size(), options.only.size());
  return options.only.compare(0, both, layer, 0, both) == 0;
}

Convolution convolutionOf(const Layer& layer, bool quick) {
  graph::Window window;
  window.height = {.size = layer.window, .stride = layer.stride};
  window = graph::paddedSame({window.height, window.height}, layer.side, layer.side);
  const int64_t batch = quick ? 1 : layer.batch;
  const int64_t out = window.height.positions(layer.side);
  return Convolution::of(
      {batch, layer.side, layer.side, layer.channels},
      {layer.window, layer.window, layer.channels / layer.groups, layer.out_channels},
      {batch, out, out, layer.out_channels}, convolutionAttributes(window, layer.groups));
}

class ConvolutionBench {
 public:
  ConvolutionBench(const Layer& layer, const BenchOptions& options)
      : layer_(layer),
        options_(options),
        c_(convolutionOf(layer, options.quick)),
        x_(randomFloats(c_.imageElements())),
        filter_(randomFloats(c_.filterElements())),
        y_(randomFloats(c_.outElements())),
        result_(static_cast<size_t>(
                    std::max({c_.imageElements(), c_.filterElements(), c_.outElements()})) *
                sizeof(float)) {}

  // A row for every pass and way.
  void measure(Isa isa, Report& report) {
    const bool first_layer = c_.channels <= 3;  // the gradient of images is not needed
    for (const auto pass : {ConvolutionPass::kForward, ConvolutionPass::kBackpropInput,
                            ConvolutionPass::kBackpropFilter}) {
      if (first_layer && pass == ConvolutionPass::kBackpropInput) continue;
      for (const ConvolutionWay& way : runtime::convolutionWays()) {
        if (way.fits(pass, c_)) measure(isa, pass, way, report);
      }
    }
  }

 private:
  void measure(Isa isa, ConvolutionPass pass, const ConvolutionWay& way, Report& report) {
    const bool chosen = &runtime::fastestWay(pass, c_, true) == &way;
    const std::string name =
        fmt::format("{} {}, {}{}", layer_.name, passName(pass), way.name, chosen ? " *" : "");
    if (!name.starts_with(options_.only)) return;
    Buffer workspace(way.workspaceBytes(isa, c_));
    const float* const first = (pass == ConvolutionPass::kBackpropInput ? filter_ : x_).as<float>();
    const float* const second = (pass == ConvolutionPass::kForward ? filter_ : y_).as<float>();
    const auto run = way.run(pass);
    const double peak = fmaPeak(isa);
    const double seconds = secondsPerCall(
        [&] {
          run(isa, c_, first, second, result_.as<float>(),
              reinterpret_cast<std::byte*>(workspace.data()));
        },
        options_);
    const double rate = 2.0 * static_cast<double>(c_.outElements()) *
                        static_cast<double>(c_.taps()) / seconds / 1e9;
    report.add(name, {seconds * 1e3, rate, peak, rate / peak});
  }

  const Layer& layer_;
  const BenchOptions& options_;
  Convolution c_;
  Buffer x_, filter_, y_, result_;
};

void measurePooling(Isa isa, const BenchOptions& options, Report& report) {
  if (!hasRows("le_pool1", options)) return;
  const int64_t batch = options.quick ? 1 : 128;
  const graph::Window half = {{2, 2}, {2, 2}};
  const Shape image = {batch, 28, 28, 32}, pooled = {batch, 14, 14, 32};
  const runtime::Pooling p = runtime::Pooling::of(image, pooled, poolingAttributes(half));
  const runtime::PoolingLoops& loops = runtime::poolingLoops(isa);
  const int64_t in = image.elements(), out = pooled.elements();
  Buffer x = randomFloats(in), y = randomFloats(out), argmax(static_cast<size_t>(out));
  const double copy = copyRate((in + out) / 2, options) / 1e9;
  const auto add = [&](const char* what, double bytes, const std::function<void()>& work) {
    const std::string name = fmt::format("le_pool1 {}", what);
    if (!name.starts_with(options.only)) return;
    const double rate = bytes / secondsPerCall(work, options) / 1e9;
    report.add(name, {bytes / 1e6, rate, copy, rate / copy});
  };
  const double floats = static_cast<double>(in + out) * sizeof(float);
  const double bytes = static_cast<double>(out);
  auto* const where = argmax.as<uint8_t>();
  add("maximum", floats + bytes, [&] { loops.maxPool(p, x.as<float>(), y.as<float>(), where); });
  add("maximum's gradient", floats + bytes,
      [&] { loops.maxPoolGrad(p, y.as<float>(), where, x.as<float>()); });
  add("average", floats, [&] { loops.avgPool(p, x.as<float>(), y.as<float>()); });
  add("average's gradient", floats, [&] { loops.avgPoolGrad(p, y.as<float>(), x.as<float>()); });
}

}  // namespace

std::vector<Report> benchKernels(const BenchOptions& options) {
  std::vector<Report> reports;
  for (const Isa isa : supportedIsas()) {
    const std::string name(isaName(isa));
    Report convolutions(name + " (* chosen)", {"ms", "GF/s", "FMA peak", "of peak"});
    for (const Layer& layer : kLayers) {
      const std::string_view layer_name = layer.name;
      if (!hasRows(layer_name, options)) continue;
      if (options.quick && options.only.empty() && !layer_name.starts_with("le_")) continue;
      ConvolutionBench(layer, options).measure(isa, convolutions);
    }
    reports.push_back(std::move(convolutions));
    Report pooling(name + ", pooling", {"MB", "GB/s", "memcpy GB/s", "of memcpy"});
    measurePooling(isa, options, pooling);
    reports.push_back(std::move(pooling));
    for (Report& report : benchOps(isa, options)) reports.push_back(std::move(report));
  }
  std::erase_if(reports, [](const Report& report) { return report.empty(); });
  if (reports.empty())
    throw Error(ErrorCode::kUsage, "no row's name begins with '" + options.only + "'");
  return reports;
}

}  // namespace dtf::bench
