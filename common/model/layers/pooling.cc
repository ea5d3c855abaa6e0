// max_pooling2d, average_pooling2d: the largest element, or the mean, of each window and channel.
// global_max_pooling2d, global_average_pooling2d: the same over the whole image (the mean: Lin,
// Chen and Yan, ICLR 2014).

#include <fmt/format.h>

#include "common/model/layer_builder.h"
#include "common/model/layers/layers.h"
#include "common/model/layers/window_keys.h"

namespace dtf::model {

namespace {

constexpr yaml::Key kPoolingKeys[] = {
    yaml::wholes("pool_size", 1, kWindowMax, "window, or [height, width]; default 2"),
    yaml::wholes("strides", 1, kWindowMax, "number, or [height, width]; default: pool_size"),
    paddingKey(),
};
constinit const yaml::Table kPoolingTable{"train.model.layers.N.max_pooling2d, .average_pooling2d",
                                          kPoolingKeys, &kAnyLayerTable};
constinit const yaml::Table kGlobalTable{
    "train.model.layers.N.global_max_pooling2d, .global_average_pooling2d", {}, &kAnyLayerTable};

enum class Pooling : uint8_t { kMax, kAverage };

class PoolingLayer final : public Layer {
 public:
  PoolingLayer(Pooling kind, const WindowSettings& window) : kind_(kind), window_(window) {}

  graph::Output build(LayerBuilder& layers, graph::Output x) const override {
    const graph::Window window = window_.over(layers, x);
    return kind_ == Pooling::kMax ? layers.ops().maxPool(x, window).y
                                  : layers.ops().avgPool(x, window);
  }
  std::string meaning(std::string_view) const override {
    return fmt::format("{} {}", kind_ == Pooling::kMax ? "max_pooling2d" : "average_pooling2d",
                       window_.text("pool_size"));
  }

 private:
  const Pooling kind_;
  const WindowSettings window_;
};

class GlobalPoolLayer final : public Layer {
 public:
  explicit GlobalPoolLayer(Pooling kind) : kind_(kind) {}

  graph::Output build(LayerBuilder& layers, graph::Output x) const override {
    requireImages(layers, x);
    graph::Builder& ops = layers.ops();
    if (kind_ == Pooling::kAverage) return ops.globalAvgPool(x);
    const Shape images = layers.shape(x);
    graph::Window window;
    window.height.size = images.dim(1);
    window.width.size = images.dim(2);
    return ops.reshape(ops.maxPool(x, window).y, Shape{images.dim(0), images.dim(3)});
  }
  std::string meaning(std::string_view) const override {
    return kind_ == Pooling::kMax ? "global_max_pooling2d" : "global_average_pooling2d";
  }

 private:
  const Pooling kind_;
};

template <Pooling kKind>
std::shared_ptr<const Layer> readPooling(const LayerType&, const yaml::MapReader& settings) {
  WindowSettings window;
  window.size = {2, 2};
  settings.wholes("pool_size", window.size);
  window.stride = window.size;
  window.read(settings, false);
  return std::make_shared<const PoolingLayer>(kKind, window);
}

template <Pooling kKind>
std::shared_ptr<const Layer> readGlobalPool(const LayerType&, const yaml::MapReader&) {
  return std::make_shared<const GlobalPoolLayer>(kKind);
}

}  // namespace

std::vector<LayerType> poolingLayers() {
  return {{"max_pooling2d", "the largest element of each window", &kPoolingTable,
           readPooling<Pooling::kMax>},
          {"average_pooling2d", "the mean of each window", &kPoolingTable,
           readPooling<Pooling::kAverage>},
          {"global_max_pooling2d", "the largest element of each channel of the image",
           &kGlobalTable, readGlobalPool<Pooling::kMax>},
          {"global_average_pooling2d", "the mean of each channel over the image", &kGlobalTable,
           readGlobalPool<Pooling::kAverage>}};
}

}  // namespace dtf::model
