#include "common/graph/window.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/graph/shape_functions.h"

namespace dtf::graph {

int64_t WindowAxis::positions(int64_t length) const {
  DTF_CHECK(size >= 1 && stride >= 1 && dilation >= 1 && before >= 0 && after >= 0);
  const int64_t room = length + before + after - extent();
  return room < 0 ? 0 : room / stride + 1;
}

WindowAxis paddedSame(WindowAxis axis, int64_t length) {
  DTF_CHECK(length >= 0 && axis.stride >= 1);
  const int64_t positions = (length + axis.stride - 1) / axis.stride;
  const int64_t padding =
      std::max<int64_t>(0, (positions - 1) * axis.stride + axis.extent() - length);
  axis.before = padding / 2;
  axis.after = padding - axis.before;
  return axis;
}

Window paddedSame(Window window, int64_t height, int64_t width) {
  return {paddedSame(window.height, height), paddedSame(window.width, width)};
}

Attributes convolutionAttributes(const Window& window, int64_t groups) {
  return {{"stride_height", window.height.stride},
          {"stride_width", window.width.stride},
          {"dilation_height", window.height.dilation},
          {"dilation_width", window.width.dilation},
          {"padding_top", window.height.before},
          {"padding_bottom", window.height.after},
          {"padding_left", window.width.before},
          {"padding_right", window.width.after},
          {"groups", groups}};
}

Window convolutionWindow(const Attributes& attributes, const Shape& filter) {
  const auto number = [&attributes](const char* key) { return get<int64_t>(attributes, key); };
  return {{filter.dim(0), number("stride_height"), number("dilation_height"), number("padding_top"),
           number("padding_bottom")},
          {filter.dim(1), number("stride_width"), number("dilation_width"), number("padding_left"),
           number("padding_right")}};
}

Attributes poolingAttributes(const Window& window) {
  DTF_CHECK(window.height.dilation == 1 && window.width.dilation == 1);
  return {{"window_height", window.height.size},   {"window_width", window.width.size},
          {"stride_height", window.height.stride}, {"stride_width", window.width.stride},
          {"padding_top", window.height.before},   {"padding_bottom", window.height.after},
          {"padding_left", window.width.before},   {"padding_right", window.width.after}};
}

Window poolingWindow(const Attributes& attributes) {
  const auto number = [&attributes](const char* key) { return get<int64_t>(attributes, key); };
  return {{number("window_height"), number("stride_height"), 1, number("padding_top"),
           number("padding_bottom")},
          {number("window_width"), number("stride_width"), 1, number("padding_left"),
           number("padding_right")}};
}

}  // namespace dtf::graph
