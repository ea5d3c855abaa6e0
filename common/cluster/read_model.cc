#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

#include "common/cluster/map_reader.h"
#include "common/cluster/read_train.h"

namespace dtf::cluster {

namespace {

constexpr size_t kDimensionsMax = 8;
constexpr size_t kLayersMax = 1000;
constexpr int64_t kElementsMax = int64_t{1} << 30;  // of one example
constexpr size_t kNameBytesMax = 128;

std::vector<int64_t> readInputShape(const YamlNode& input, Report& report) {
  const MapReader reader(input, schema::kInput, input.key, report);
  const std::vector<YamlNode>& sizes = reader.list("shape");
  std::vector<int64_t> shape;
  int64_t elements = 1;
  for (const YamlNode& size : sizes) {
    const std::optional<int64_t> value = readWhole(size, schema::kInput.at("shape"), report);
    if (!value) continue;
    shape.push_back(*value);
    // A size is at most 10^6 and the product before it at most 2^30 + 1: no overflow.
    elements = std::min(elements * *value, kElementsMax + 1);
  }
  const YamlNode* list = input.find("shape");
  if (list == nullptr || !list->isSequence()) return shape;
  if (sizes.empty() || sizes.size() > kDimensionsMax)
    report.error(list->where(), fmt::format("'shape' must have from 1 to {} sizes, got {}",
                                            kDimensionsMax, sizes.size()));
  if (elements > kElementsMax)
    report.error(list->where(), fmt::format("'shape' has more than {} elements", kElementsMax));
  return shape;
}

// Variables are named after their layer ("softmax/weights"), and files after variables.
bool isLayerName(std::string_view name) {
  return name.size() <= kNameBytesMax && name[0] != '-' && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) || c == '.' || c == '_' || c == '-';
         });
}

DenseLayer readDense(const MapReader& reader) {
  DenseLayer dense;
  reader.whole("units", dense.units);
  reader.choice("activation", dense.activation);
  reader.boolean("use_bias", dense.use_bias);
  size_t initializer = 0;
  if (reader.choice("kernel_initializer", initializer))
    dense.kernel_initializer = reader.find("kernel_initializer")->text;
  return dense;
}

const Table& keysOf(std::string_view type) {
  if (type == "dense") return schema::kDense;
  return type == "dropout" ? schema::kDropout : schema::kPlainLayer;
}

// `type` is the layer's key in schema::kLayers.
LayerSpec readLayerOf(std::string_view type, const YamlNode& settings, Report& report) {
  const MapReader reader(settings, keysOf(type), type, report);
  LayerSpec layer;
  layer.mark = report.markOf(settings.key_place);
  if (type == "dense") {
    layer.type = LayerSpec::Type::kDense;
    layer.dense = readDense(reader);
  } else if (type == "dropout") {
    layer.type = LayerSpec::Type::kDropout;
    reader.number("rate", layer.dropout.rate);
  } else if (const std::optional<Activation> activation = activationOf(type)) {
    layer.type = LayerSpec::Type::kActivation;
    layer.activation.activation = *activation;
  }
  if (reader.text("name", layer.name) && !isLayerName(layer.name)) {
    report.error(
        settings.find("name")->where(),
        "a layer's name has letters, digits, '.', '_' and '-', starts with none of '.' and "
        "'-', and is at most 128 long, got " +
            inQuotes(layer.name));
  }
  return layer;
}

// "dense", "dense_1" and so on, in order, past every name that the file gives.
void giveDefaultNames(std::vector<LayerSpec>& layers, const std::vector<std::string_view>& types,
                      std::set<std::string> taken) {
  for (size_t i = 0; i < layers.size(); ++i) {
    if (!layers[i].name.empty()) continue;
    std::string name(types[i]);
    for (int n = 1; !taken.insert(name).second; ++n) name = fmt::format("{}_{}", types[i], n);
    layers[i].name = name;
  }
}

std::vector<LayerSpec> readLayers(const YamlNode& model, const MapReader& reader, Report& report) {
  const std::vector<YamlNode>& nodes = reader.list("layers");
  const YamlNode* list = model.find("layers");
  if (list != nullptr && list->isSequence() && (nodes.empty() || nodes.size() > kLayersMax))
    report.error(list->where(), fmt::format("'layers' must have from 1 to {} layers, got {}",
                                            kLayersMax, nodes.size()));
  std::vector<LayerSpec> layers;
  std::vector<std::string_view> types;
  std::set<std::string> taken;
  for (const YamlNode& node : nodes) {
    const std::optional<Alternative> chosen =
        readAlternative(node, schema::kLayers, "layer", report);
    if (!chosen) continue;
    LayerSpec layer = readLayerOf(chosen->key->name, chosen->settings, report);
    if (!layer.name.empty() && !taken.insert(layer.name).second)
      report.error(chosen->settings.find("name")->where(),
                   "two layers are named " + inQuotes(layer.name));
    layers.push_back(std::move(layer));
    types.push_back(chosen->key->name);
  }
  giveDefaultNames(layers, types, std::move(taken));
  return layers;
}

}  // namespace

ModelSpec readModel(const YamlNode& node, Report& report) {
  const MapReader reader(node, schema::kModel, node.key, report);
  ModelSpec model;
  model.mark = report.markOf(node.key_place);
  if (const YamlNode* input = reader.find("input")) {
    model.input_shape = readInputShape(*input, report);
    const YamlNode* shape = input->find("shape");
    model.shape_mark = report.markOf(shape != nullptr ? shape->key_place : input->key_place);
  }
  model.layers = readLayers(node, reader, report);
  reader.choice("loss", model.loss);
  for (const YamlNode& metric : reader.list("metrics"))
    model.accuracy |= readChoice(metric, schema::kModel.at("metrics"), report).has_value();
  return model;
}

}  // namespace dtf::cluster
