#pragma once

// `model.blocks`: lists of layers that are written once, with parameters, and used under their own
// name as if they were layers:
//
//   blocks:
//     bottleneck:
//       parameters: {filters: , stride: 1}      # one without a value must be given
//       layers:
//         - conv2d: {filters: $filters, kernel_size: 3, strides: $stride, padding: 1}
//         - batch_normalization:
//   layers:
//     - bottleneck: {name: first, filters: 64}
//
// Each use becomes the layer `block` with these layers, or the layer itself if there is only one
// and it isn't repeated. The YAML tree is expanded before any layer is read: layers don't know of
// blocks, and an error points to where its value was written.

#include "common/yaml/report.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::model {

// Returns `layers` with every use of a block replaced, also within other layers and blocks.
// Mistakes go into the report.
yaml::YamlNode withoutTemplates(const yaml::YamlNode& layers, const yaml::YamlNode& blocks,
                                yaml::Report& report);

extern const yaml::Table kTemplateTable;  // model.blocks.NAME:

}  // namespace dtf::model
