// depthwise_conv2d: each channel convolved with filters of its own (Sifre, 2014; MobileNets).
// Weights are [height, width, channels, multiplier], as TensorFlow's.

#include <fmt/format.h>

#include "common/model/layer_builder.h"
#include "common/model/layers/initializer_keys.h"
#include "common/model/layers/kernel_keys.h"
#include "common/model/layers/layers.h"
#include "common/model/layers/window_keys.h"

namespace dtf::model {

namespace {

constexpr yaml::Key kDepthwiseKeys[] = {
    yaml::required(yaml::wholes("kernel_size", 1, kWindowMax, "size, or [height, width]")),
    yaml::whole("depth_multiplier", 1, 1'000'000, "filters of each channel; default 1"),
    yaml::wholes("strides", 1, kWindowMax, "number, or [height, width]; default 1"),
    paddingKey(),
    yaml::wholes("dilation_rate", 1, kWindowMax, "number, or [height, width]; default 1"),
    yaml::choice("activation", kActivationNames, "", "default none"),
    yaml::boolean("use_bias", "default true"),
    initializerKey("depthwise_initializer", "default glorot_uniform"),
    initializerKey("bias_initializer", "default zeros"),
    yaml::map("depthwise_regularizer", "added to the loss; default nothing"),
};
constinit const yaml::Table kDepthwiseTable{"train.model.layers.N.depthwise_conv2d", kDepthwiseKeys,
                                            &kAnyLayerTable};

struct DepthwiseSettings {
  WindowSettings window;
  int64_t multiplier = 1;
  KernelSettings kernel{.word = "depthwise"};
};

class DepthwiseConv2dLayer final : public Layer {
 public:
  explicit DepthwiseConv2dLayer(DepthwiseSettings settings) : settings_(std::move(settings)) {}

  graph::Output build(LayerBuilder& layers, graph::Output x) const override {
    const graph::Window window = settings_.window.over(layers, x);
    const int64_t channels = layers.shape(x).dim(3);
    const Shape filters{window.height.size, window.width.size, channels, settings_.multiplier};
    const graph::Output weights = settings_.kernel.weights(layers, filters);
    return settings_.kernel.finish(layers, layers.ops().depthwiseConv2D(x, weights, window));
  }

  std::string meaning(std::string_view name) const override {
    return fmt::format("depthwise_conv2d {}: depth_multiplier={} {}{}", name, settings_.multiplier,
                       settings_.window.text("kernel_size"), settings_.kernel.meaning());
  }
  std::string text(std::string_view name) const override {
    return meaning(name) + settings_.kernel.rest();
  }

 private:
  const DepthwiseSettings settings_;
};

std::shared_ptr<const Layer> readDepthwise(const LayerType&, const yaml::MapReader& settings) {
  DepthwiseSettings conv;
  settings.wholes("kernel_size", conv.window.size);
  settings.whole("depth_multiplier", conv.multiplier);
  conv.window.read(settings, true);
  conv.kernel.read(settings);
  return std::make_shared<const DepthwiseConv2dLayer>(std::move(conv));
}

}  // namespace

LayerType depthwiseConv2dLayer() {
  return {"depthwise_conv2d", "activation(each channel convolved with its kernel + bias)",
          &kDepthwiseTable, readDepthwise};
}

}  // namespace dtf::model
