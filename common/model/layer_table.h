#pragma once

// All types of layers, in the order of the reference.

#include <span>
#include <string_view>
#include <vector>

#include "common/model/layer.h"

namespace dtf::model {

std::span<const LayerType> layerTypes();

// Returns the type `name`, which must exist.
const LayerType& layerType(std::string_view name);

// The types as keys, for readAlternative().
const yaml::Table& layerTable();

// The tables of `model:` and of everything below it.
std::vector<const yaml::Table*> modelTables();

}  // namespace dtf::model
