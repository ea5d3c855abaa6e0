// conv2d: activation(x convolved with weights + biases), over images [height, width, channels].
// Weights are [height, width, channels / groups, filters], as TensorFlow's.

#include <fmt/format.h>

#include "common/model/layer_builder.h"
#include "common/model/layers/kernel_keys.h"
#include "common/model/layers/layers.h"
#include "common/model/layers/window_keys.h"

namespace dtf::model {

namespace {

constexpr yaml::Key kConv2dKeys[] = {
    yaml::required(yaml::whole("filters", 1, 1'000'000, "channels of the output")),
    yaml::required(yaml::wholes("kernel_size", 1, kWindowMax, "size, or [height, width]")),
    yaml::wholes("strides", 1, kWindowMax, "number, or [height, width]; default 1"),
    paddingKey(),
    yaml::wholes("dilation_rate", 1, kWindowMax, "number, or [height, width]; default 1"),
    yaml::whole("groups", 1, 1'000'000,
                "groups of channels, each with filters of its own; default 1"),
};
constinit const yaml::Table kConv2dTable{"train.model.layers.N.conv2d", kConv2dKeys, &kKernelTable};

struct Conv2dSettings {
  int64_t filters = 0;
  WindowSettings window;
  int64_t groups = 1;
  KernelSettings kernel;
};

class Conv2dLayer final : public Layer {
 public:
  explicit Conv2dLayer(Conv2dSettings settings) : settings_(std::move(settings)) {}

  graph::Output build(LayerBuilder& layers, graph::Output x) const override {
    const graph::Window window = settings_.window.over(layers, x);
    const int64_t channels = layers.shape(x).dim(3);
    checkGroups(layers, channels);
    const Shape filters{window.height.size, window.width.size, channels / settings_.groups,
                        settings_.filters};
    const graph::Output weights = settings_.kernel.weights(layers, filters);
    return settings_.kernel.finish(layers,
                                   layers.ops().conv2D(x, weights, window, settings_.groups));
  }

  std::string meaning(std::string_view name) const override {
    const std::string groups =
        settings_.groups == 1 ? "" : fmt::format(" groups={}", settings_.groups);
    return fmt::format("conv2d {}: filters={} {}{}{}", name, settings_.filters,
                       settings_.window.text("kernel_size"), groups, settings_.kernel.meaning());
  }
  std::string text(std::string_view name) const override {
    return meaning(name) + settings_.kernel.rest();
  }

 private:
  void checkGroups(const LayerBuilder& layers, int64_t channels) const {
    if (channels % settings_.groups == 0 && settings_.filters % settings_.groups == 0) return;
    layers.fail(
        fmt::format("layer '{}': {} groups must divide both its {} input channels and its "
                    "{} filters",
                    layers.layerName(), settings_.groups, channels, settings_.filters));
  }

  const Conv2dSettings settings_;
};

std::shared_ptr<const Layer> readConv2d(const LayerType&, const yaml::MapReader& settings) {
  Conv2dSettings conv;
  settings.whole("filters", conv.filters);
  settings.wholes("kernel_size", conv.window.size);
  conv.window.read(settings, true);
  settings.whole("groups", conv.groups);
  conv.kernel.read(settings);
  return std::make_shared<const Conv2dLayer>(std::move(conv));
}

}  // namespace

LayerType conv2dLayer() {
  return {"conv2d", "activation(input convolved with kernel + bias), over images", &kConv2dTable,
          readConv2d};
}

}  // namespace dtf::model
