#include "common/model/layer_table.h"

#include <algorithm>
#include <string>

#include "common/base/check.h"
#include "common/model/layer_templates.h"
#include "common/model/layers/initializer_keys.h"
#include "common/model/layers/kernel_keys.h"
#include "common/model/layers/layers.h"
#include "common/model/loss.h"
#include "common/model/read_model.h"
#include "common/yaml/keys.h"

namespace dtf::model {

namespace {

constexpr yaml::Key kAnyLayerKeys[] = {
    yaml::text("name", "unique in the model; default the type: dense, dense_1, ..."),
    yaml::text("from", "the layer that it reads; default the one before it"),
};

std::vector<LayerType> allLayers() {
  std::vector<LayerType> types = {flattenLayer(), reshapeLayer(), denseLayer(), conv2dLayer(),
                                  depthwiseConv2dLayer()};
  const auto add = [&types](const std::vector<LayerType>& family) {
    types.insert(types.end(), family.begin(), family.end());
  };
  add(poolingLayers());
  add(activationLayers());
  types.push_back(embeddingLayer());
  types.push_back(lstmLayer());
  types.push_back(dropoutLayer());
  types.push_back(batchNormLayer());
  types.push_back(layerNormLayer());
  types.push_back(normalizeLayer());
  add(branchLayers());
  types.push_back(graphLayer());
  return types;
}

}  // namespace

constinit const yaml::Table kAnyLayerTable{"train.model.layers.N.TYPE", kAnyLayerKeys};

std::span<const LayerType> layerTypes() {
  static const std::vector<LayerType> types = allLayers();
  return types;
}

const LayerType& layerType(std::string_view name) {
  const std::span<const LayerType> types = layerTypes();
  const auto found = std::find_if(types.begin(), types.end(),
                                  [name](const LayerType& type) { return type.name == name; });
  DTF_CHECK_MSG(found != types.end(), std::string(name));
  return *found;
}

const yaml::Table& layerTable() {
  static const std::vector<yaml::Key> keys = [] {
    std::vector<yaml::Key> all;
    for (const LayerType& type : layerTypes()) all.push_back(yaml::map(type.name, type.help));
    return all;
  }();
  static const yaml::Table table{"train.model.layers.N", keys};
  return table;
}

std::vector<const yaml::Table*> modelTables() {
  std::vector<const yaml::Table*> tables = {&kModelTable, &kInputTable, &layerTable()};
  // A family shares one table.
  for (const LayerType& type : layerTypes())
    if (std::find(tables.begin(), tables.end(), type.keys) == tables.end())
      tables.push_back(type.keys);
  for (const yaml::Table* table :
       {&kTemplateTable, &kKernelTable, &kInitializerTable, &kRegularizerTable, &kAnyLayerTable})
    tables.push_back(table);
  for (const yaml::Table* table : lossTables()) tables.push_back(table);
  return tables;
}

}  // namespace dtf::model
