#include "gpu/labels.h"

#include "gpu/error.h"

namespace dtf::gpu {

LabelInput::LabelInput(const Operation& operation, size_t input, int64_t classes, Kind kind)
    : input_(input),
      count_(operation.inputs[input].elements()),
      source_{operation.name, kind == Kind::kLabels, classes} {
  labels_.type = operation.inputs[input].type;
  labels_.classes = classes;
  const bool float_labels = labels_.type == Type::kFloat32 && kind == Kind::kLabels;
  if (float_labels || classes > INT32_MAX)
    throw PluginError(DTF_PLUGIN_BAD_CONFIG, "Node '" + operation.name +
                                                 "': labels must be uint8, int32 or int64, and "
                                                 "there must be fewer than 2^31 classes.");
}

void LabelInput::prepare(Device& device) {
  labels_.source = device.addSource(source_);
}

Labels LabelInput::bound(Device& device, const Arguments& a) const {
  Labels labels = labels_;
  labels.data = a.inputs[input_];
  labels.bad = device.badData();
  return labels;
}

}  // namespace dtf::gpu
