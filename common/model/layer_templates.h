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
// Each use becomes the layer `block` with these layers, or, where there is one only and it isn't
// repeated, that layer itself. They are put in their places in the tree, before anything is read:
// no layer knows of them, and a mistake points to where the value was written.

#include "common/yaml/report.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::model {

// `layers` with every use of a block of `blocks`, also within other layers and blocks, replaced.
// Mistakes go into the report.
yaml::YamlNode withoutTemplates(const yaml::YamlNode& layers, const yaml::YamlNode& blocks,
                                yaml::Report& report);

extern const yaml::Table kTemplateTable;  // model.blocks.NAME:

}  // namespace dtf::model
