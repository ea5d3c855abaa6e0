#pragma once

// The tree of `model:` -> ModelSpec.

#include <string_view>
#include <vector>

#include "common/model/model_spec.h"
#include "common/yaml/map_reader.h"
#include "common/yaml/report.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::model {

// Mistakes go into the report; the result is only meaningful when there are none.
ModelSpec readModel(const yaml::YamlNode& node, yaml::Report& report);

// Whether the features name rows of a table: whole numbers, all the way from the file.
bool looksUpFeatures(const ModelSpec& model);

// The list of layers that is the value of `key`, for layers that hold others.
std::vector<LayerSpec> readLayers(const yaml::MapReader& reader, std::string_view key);

extern const yaml::Table kModelTable;  // model:
extern const yaml::Table kInputTable;  // model.input:

}  // namespace dtf::model
