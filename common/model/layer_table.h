#pragma once

// All layers there are, in the order in which the reference lists them.

#include <span>
#include <string_view>
#include <vector>

#include "common/model/layer.h"

namespace dtf::model {

std::span<const LayerType> layerTypes();

// DTF_CHECKs that there is one.
const LayerType& layerType(std::string_view name);

// The types as keys, for readAlternative().
const yaml::Table& layerTable();

// The tables of `model:` and of everything below it.
std::vector<const yaml::Table*> modelTables();

}  // namespace dtf::model
