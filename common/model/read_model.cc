#include "common/model/read_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

#include "common/base/check.h"
#include "common/base/text.h"
#include "common/model/former_names.h"
#include "common/model/layer.h"
#include "common/model/layer_table.h"
#include "common/model/layer_templates.h"
#include "common/model/loss.h"
#include "common/model/metrics.h"
#include "common/yaml/keys.h"
#include "common/yaml/map_reader.h"

namespace dtf::model {

using yaml::inQuotes;
using yaml::MapReader;
using yaml::Report;
using yaml::YamlNode;

namespace {

constexpr yaml::Key kModelKeys[] = {
    yaml::required(yaml::map("input", "one example")),
    yaml::map("blocks", "lists of layers, with parameters, that 'layers' use by their names"),
    yaml::list("layers", "from the input to the last"),
    yaml::map("graph", "in place of layers: the network op by op"),
    yaml::required(
        yaml::textOrMap("loss", "value that training minimizes: a name, or {name: {settings}}")),
    {.name = "metrics",
     .type = yaml::ValueType::kList,
     .help = "to evaluate; the 5 may be any number, and k is 5",
     .choices = kMetricNames},
    yaml::list("scalars", "tensors of a `graph` to evaluate: float32 scalars, by name"),
};

constexpr yaml::Key kInputKeys[] = {
    {.name = "shape",
     .type = yaml::ValueType::kList,
     .help = "shape of one example, without the batch: [28, 28, 1]",
     .required = true,
     .whole_min = 1,
     .whole_max = 1'000'000},
};

constexpr size_t kDimensionsMax = 8;
constexpr size_t kLayersMax = 1000;
constexpr int64_t kExampleElementsMax = int64_t{1} << 30;  // of one example
constexpr size_t kNameBytesMax = 128;

std::vector<int64_t> readInputShape(const YamlNode& input, Report& report) {
  const MapReader reader(input, kInputTable, input.key, report);
  const std::vector<YamlNode>& sizes = reader.list("shape");
  std::vector<int64_t> shape;
  int64_t elements = 1;
  for (const YamlNode& size : sizes) {
    const std::optional<int64_t> value = readWhole(size, kInputTable.at("shape"), report);
    if (!value) continue;
    shape.push_back(*value);
    // A size is at most 10^6 and the product before it at most 2^30 + 1: no overflow.
    elements = std::min(elements * *value, kExampleElementsMax + 1);
  }
  const YamlNode* list = input.find("shape");
  if (list == nullptr || !list->isSequence()) return shape;
  if (sizes.empty() || sizes.size() > kDimensionsMax)
    report.error(list->where(), fmt::format("'shape' must have from 1 to {} sizes, got {}",
                                            kDimensionsMax, sizes.size()));
  if (elements > kExampleElementsMax)
    report.error(list->where(),
                 fmt::format("'shape' has more than {} elements", kExampleElementsMax));
  return shape;
}

// Variables are named after their layer ("softmax/weights"), and files after variables.
bool isLayerName(std::string_view name) {
  return name.size() <= kNameBytesMax && name[0] != '-' && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) || c == '.' || c == '_' || c == '-';
         });
}

// `type` is the layer's key in the layer table.
LayerSpec readLayer(const yaml::Alternative& chosen, Report& report) {
  const LayerType& type = layerType(chosen.key->name);
  const YamlNode& settings = chosen.settings;
  const MapReader reader(settings, *type.keys, type.name, report);
  LayerSpec layer{std::string(type.name), {}, {}, type.read(type, reader), {}};
  layer.mark = report.markOf(settings.key_place);
  DTF_CHECK_MSG(layer.layer != nullptr, layer.type);
  if (reader.text("name", layer.name) && !isLayerName(layer.name)) {
    report.error(
        settings.find("name")->where(),
        "a layer's name has letters, digits, '.', '_' and '-', starts with none of '.' and "
        "'-', and is at most 128 long, got " +
            inQuotes(layer.name));
  }
  reader.text("from", layer.from);
  return layer;
}

// Names the unnamed layers "dense", "dense_1" and so on, in order, skipping names in `taken`.
// `words` are the types as the file spells them: checkpoints of old files have variables of the old
// names. Both spellings of a type count together, so that a file may be changed layer by layer.
void giveDefaultNames(std::vector<LayerSpec>& layers, const std::vector<std::string>& words,
                      std::set<std::string> taken) {
  DTF_CHECK(words.size() == layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    LayerSpec& layer = layers[i];
    if (!layer.name.empty()) continue;
    std::string name = words[i];
    for (int n = 1; !taken.insert(name).second; ++n) name = fmt::format("{}_{}", words[i], n);
    layer.name = name;
    const std::string other = otherDefaultName(name, words[i], layer.type);
    if (!other.empty()) taken.insert(other);
  }
}

// Returns `graph` as a list `layers` of that one layer.
YamlNode listOf(const YamlNode& graph) {
  YamlNode layer, list;
  layer.kind = YamlNode::Kind::kMap;
  list.kind = YamlNode::Kind::kSequence;
  list.key = "layers";
  layer.place = layer.key_place = list.place = list.key_place = graph.key_place;
  layer.children.push_back(graph);
  list.children.push_back(std::move(layer));
  return list;
}

// Returns the map with `blocks` expanded in `layers`, and with `graph` as a layer.
YamlNode withLayers(const YamlNode& node, Report& report) {
  YamlNode whole = node;
  const YamlNode* const blocks = node.find("blocks");
  const YamlNode* const graph = node.find("graph");
  if (node.find("layers") == nullptr) {
    if (graph != nullptr) whole.children.push_back(listOf(*graph));
    if (graph == nullptr && (node.isMap() || node.isNull()))
      report.error(node.key_place,
                   "missing key 'layers' in 'model': from the input to the last; or 'graph', the "
                   "network op by op");
  } else if (graph != nullptr) {
    report.error(graph->key_place,
                 "a model has 'layers' or 'graph': for both, make it one of the layers, '- graph: "
                 "{ops: ...}'");
  }
  YamlNode* const layers = whole.find("layers");
  if (blocks != nullptr && layers != nullptr && layers->isSequence())
    *layers = withoutTemplates(*layers, *blocks, report);
  return whole;
}

}  // namespace

constinit const yaml::Table kModelTable{"train.model", kModelKeys};
constinit const yaml::Table kInputTable{"train.model.input", kInputKeys};

std::vector<LayerSpec> readLayers(const MapReader& reader, std::string_view key) {
  Report& report = reader.report();
  const std::vector<YamlNode>& nodes = reader.list(key);
  const YamlNode* list = reader.find(key);
  if (list != nullptr && list->isSequence() && (nodes.empty() || nodes.size() > kLayersMax))
    report.error(list->where(), fmt::format("{} must have from 1 to {} layers, got {}",
                                            inQuotes(key), kLayersMax, nodes.size()));
  std::vector<LayerSpec> layers;
  std::vector<std::string> words;
  std::set<std::string> taken;
  for (const YamlNode& node : nodes) {
    const LayerUse use = withTodaysNames(node, report);
    const std::optional<yaml::Alternative> chosen =
        readAlternative(use.node, layerTable(), "layer", report);
    if (!chosen) continue;
    LayerSpec layer = readLayer(*chosen, report);
    if (!layer.name.empty() && !taken.insert(layer.name).second)
      report.error(chosen->settings.find("name")->where(),
                   "two layers are named " + inQuotes(layer.name));
    layers.push_back(std::move(layer));
    words.push_back(use.word);
  }
  giveDefaultNames(layers, words, std::move(taken));
  return layers;
}

// A scalar is reported by its name among the other figures of an evaluation.
void readScalars(const MapReader& reader, ModelSpec& model) {
  Report& report = reader.report();
  for (const YamlNode& node : reader.list("scalars")) {
    const auto name = yaml::readText(node, "scalars", report);
    if (!name) continue;
    const bool is_twice = std::ranges::any_of(
        model.scalars, [&](const ModelSpec::Scalar& other) { return other.tensor == *name; });
    if (is_twice || isMetricName(*name) || isEvaluationKey(*name))
      report.error(node.where(),
                   fmt::format("the evaluations have a {} already: write LAYER/{}, or give the op "
                               "another name",
                               inQuotes(*name), printable(*name)));
    else
      model.scalars.push_back({*name, report.markOf(node.where())});
  }
}

ModelSpec readModel(const YamlNode& node, Report& report) {
  const YamlNode whole = withLayers(node, report);
  const MapReader reader(whole, kModelTable, node.key, report);
  ModelSpec model;
  model.mark = report.markOf(node.key_place);
  if (const YamlNode* input = reader.find("input")) {
    model.input_shape = readInputShape(*input, report);
    const YamlNode* shape = input->find("shape");
    model.shape_mark = report.markOf(shape != nullptr ? shape->key_place : input->key_place);
  }
  model.layers = readLayers(reader, "layers");
  if (const YamlNode* loss = reader.find("loss")) {
    model.loss = readLoss(*loss, report);
    model.loss_mark = report.markOf(loss->where());
  }
  readScalars(reader, model);
  for (const YamlNode& metric : reader.list("metrics")) {
    const std::optional<MetricSpec> named =
        metric.isScalar() ? metricNamed(metric.text) : std::nullopt;
    if (!named) {
      model.accuracy |= readChoice(metric, kModelTable.at("metrics"), report) == size_t{0};
      continue;
    }
    if (const std::optional<std::string> now = renamed(*named))
      warnOfFormerName(named->word, *now, metric.place, report);
    if (std::ranges::find(model.metrics, *named) == model.metrics.end())
      model.metrics.push_back(*named);
  }
  return model;
}

bool looksUpFeatures(const ModelSpec& model) {
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [](const LayerSpec& each) { return each.layer->looksUpFeatures(); });
}

}  // namespace dtf::model
