#pragma once

// Reads `model:` into a ModelSpec.

#include <string_view>
#include <vector>

#include "common/model/model_spec.h"
#include "common/yaml/map_reader.h"
#include "common/yaml/report.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::model {

// Mistakes go into the report; the result is only meaningful when there are none.
ModelSpec readModel(const yaml::YamlNode& node, yaml::Report& report);

// Whether a layer looks up the features as row numbers (see Layer).
bool looksUpFeatures(const ModelSpec& model);

// Reads the list of layers at `key`, for layers that hold others.
std::vector<LayerSpec> readLayers(const yaml::MapReader& reader, std::string_view key);

extern const yaml::Table kModelTable;  // model:
extern const yaml::Table kInputTable;  // model.input:

}  // namespace dtf::model
