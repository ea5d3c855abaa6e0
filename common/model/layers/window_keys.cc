#include "common/model/layers/window_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/model/layer_builder.h"

namespace dtf::model {

void requireImages(const LayerBuilder& layers, graph::Output x) {
  if (layers.shape(x).rank() == 4) return;
  layers.fail(
      fmt::format("layer '{}' needs images of [height, width, channels], got {}: "
                  "model.input.shape is the shape of one example, [28, 28, 1]",
                  layers.layerName(), layers.exampleShape(x).str()));
}

void WindowSettings::read(const yaml::MapReader& settings, bool has_dilation) {
  settings.wholes("strides", stride);
  if (has_dilation) settings.wholes("dilation_rate", dilation);
  size_t word = 0;
  if (settings.isWord("padding")) {
    settings.choice("padding", word);
    same = word == 1;
  } else {
    settings.wholes("padding", padding);
  }
}

graph::Window WindowSettings::over(const LayerBuilder& layers, graph::Output x) const {
  requireImages(layers, x);
  const Shape& images = layers.shape(x);
  graph::Window window{{size[0], stride[0], dilation[0], padding[0], padding[1]},
                       {size[1], stride[1], dilation[1], padding[2], padding[3]}};
  if (same) window = graph::paddedSame(window, images.dim(1), images.dim(2));
  if (window.height.positions(images.dim(1)) < 1 || window.width.positions(images.dim(2)) < 1)
    layers.fail(
        fmt::format("layer '{}': a window of {} x {} does not fit into images of {} x {}: "
                    "pad them (padding: same), or use a smaller window",
                    layers.layerName(), window.height.extent(), window.width.extent(),
                    images.dim(1), images.dim(2)));
  return window;
}

std::string WindowSettings::text(std::string_view size_key) const {
  std::string words =
      fmt::format("{}={}x{} strides={}x{}", size_key, size[0], size[1], stride[0], stride[1]);
  if (dilation != Pair{1, 1})
    words += fmt::format(" dilation_rate={}x{}", dilation[0], dilation[1]);
  if (same) return words + " padding=same";
  return words + (padding == std::array<int64_t, 4>{}
                      ? " padding=valid"
                      : fmt::format(" padding={}", fmt::join(padding, ",")));
}

}  // namespace dtf::model
