#pragma once

// Keys and checks of layers that move a window over images [height, width, channels].

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/graph/window.h"
#include "common/model/layer.h"
#include "common/yaml/keys.h"

namespace dtf::model {

class LayerBuilder;

inline constexpr int64_t kWindowMax = 1024;  // elements of a window along an axis

constexpr yaml::Key paddingKey() {
  yaml::Key key =
      yaml::wholes("padding", 0, kWindowMax,
                   "or [top, bottom, left, right]; same: all of strides; default valid");
  key.type = yaml::ValueType::kChoiceOrList;
  key.choices = "valid|same";
  return key;
}

// The window of one layer as the file gives it. Value type.
struct WindowSettings {
  using Pair = std::array<int64_t, 2>;  // height, width
  Pair size = {1, 1};
  Pair stride = {1, 1};
  Pair dilation = {1, 1};
  bool same = false;
  std::array<int64_t, 4> padding = {};  // top, bottom, left, right; unless `same`

  // Reads `strides`, `padding`, and `dilation_rate` if the table has it. The layer itself reads the
  // size.
  void read(const yaml::MapReader& settings, bool has_dilation);

  // Returns the window for the images `x`.
  // Errors: LayerBuilder::fail() when `x` are no images, or smaller than the window.
  graph::Window over(const LayerBuilder& layers, graph::Output x) const;

  // "kernel_size=3x3 strides=1x1 padding=same"; `size_key` is the layer's key of the size.
  std::string text(std::string_view size_key) const;
};

// Errors: LayerBuilder::fail() when `x` isn't [batch, height, width, channels].
void requireImages(const LayerBuilder& layers, graph::Output x);

}  // namespace dtf::model
