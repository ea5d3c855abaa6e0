// Code shared by device.cc and the host's device.

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "gpu/device.h"

namespace dtf::gpu {
namespace {

std::string numberText(double value) {
  if (std::floor(value) == value && std::abs(value) < 0x1p53)
    return std::to_string(static_cast<int64_t>(value));
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

}  // namespace

std::string badDataMessage(const BadDataSource& source, int64_t index, double value) {
  return "Node '" + source.node + "': " + (source.labels ? "the label of row " : "index ") +
         std::to_string(index) + " is " + numberText(value) +
         ", it must be a whole number in [0, " + std::to_string(source.classes) + "). " +
         (source.labels ? "Check the labels' file and the model's last layer."
                        : "Check the data and the size of the layer's table.");
}

int32_t Device::addSource(const BadDataSource& source) {
  const auto known = std::find(sources_.begin(), sources_.end(), source);
  if (known == sources_.end()) {
    sources_.push_back(source);
    return static_cast<int32_t>(sources_.size()) - 1;
  }
  return static_cast<int32_t>(known - sources_.begin());
}

}  // namespace dtf::gpu
