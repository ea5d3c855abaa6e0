#include "common/model/layer_templates.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "common/model/former_names.h"
#include "common/model/layer_table.h"
#include "common/yaml/keys.h"
#include "common/yaml/map_reader.h"

namespace dtf::model {

using yaml::inQuotes;
using yaml::MapReader;
using yaml::Report;
using yaml::YamlNode;

namespace {

constexpr yaml::Key kTemplateKeys[] = {
    yaml::map("parameters", "names with their defaults; one without must be given"),
    yaml::required(yaml::list("layers", "in which $NAME stands for the parameter")),
};
// Keys of any use, beside the block's parameters.
constexpr std::string_view kOwnKeys[] = {"name", "from", "repeat"};
constexpr int kNestedMax = 16;

bool isOwnKey(std::string_view key) {
  return std::find(std::begin(kOwnKeys), std::end(kOwnKeys), key) != std::end(kOwnKeys);
}

size_t nodesOf(const YamlNode& node) {
  size_t nodes = 1;
  for (const YamlNode& child : node.children) nodes += nodesOf(child);
  return nodes;
}

// Returns an element of a list of layers as its type (the key) with its settings.
YamlNode useOf(const YamlNode& element) {
  if (element.isMap() && element.children.size() == 1) return element.children[0];
  YamlNode use;
  if (!element.isScalar()) return use;
  use.key = element.text;
  use.place = use.key_place = element.place;
  return use;
}

struct Template {
  std::vector<YamlNode> parameters;
  const YamlNode* layers = nullptr;  // borrowed from the file
};

class Templates {
 public:
  Templates(const YamlNode& blocks, Report& report) : report_(report) {
    if (!blocks.isMap()) yaml::reportType("a map", "blocks", blocks, report_);
    if (blocks.isMap())
      for (const YamlNode& block : blocks.children) read(block);
  }

  // `depth`: the number of blocks around `layers`.
  YamlNode replaced(const YamlNode& layers, int depth) {
    DTF_CHECK(layers.isSequence() && depth <= kNestedMax);
    YamlNode all = layers;
    for (YamlNode& element : all.children) {
      const YamlNode use = useOf(element);
      const auto found = templates_.find(use.key);
      if (found != templates_.end())
        element = expanded(found->first, found->second, use, depth);
      else if (element.isMap())
        replaceWithin(element, depth);
    }
    return all;
  }

 private:
  void read(const YamlNode& block) {
    const MapReader reader(block, kTemplateTable, block.key, report_);
    if (layerTable().find(block.key) != nullptr ||
        formerName(FormerName::Kind::kLayer, block.key) != nullptr)
      report_.error(block.key_place,
                    fmt::format("{} is a layer: give the block another name", inQuotes(block.key)));
    Template& made = templates_[block.key];
    if (const YamlNode* const parameters = reader.find("parameters")) {
      if (!parameters->isMap()) yaml::reportType("a map", "parameters", *parameters, report_);
      if (parameters->isMap()) made.parameters = parameters->children;
    }
    for (const YamlNode& parameter : made.parameters)
      if (isOwnKey(parameter.key))
        report_.error(parameter.key_place, fmt::format("every layer has a {} of its own: give the "
                                                       "parameter another name",
                                                       inQuotes(parameter.key)));
    const YamlNode* const layers = reader.find("layers");
    if (layers == nullptr) return;
    if (!layers->isSequence()) return yaml::reportType("a list", "layers", *layers, report_);
    if (!layers->children.empty())
      made.layers = layers;
    else
      report_.error(layers->key_place, fmt::format("block {} has no layers", inQuotes(block.key)));
  }

  // Expands the lists of layers that a layer holds.
  void replaceWithin(YamlNode& element, int depth) {
    for (YamlNode& layer : element.children)
      for (YamlNode& value : layer.children)
        if (value.isSequence() && (value.key == "layers" || value.key == "shortcut"))
          value = replaced(value, depth);
  }

  YamlNode expanded(const std::string& name, const Template& block, const YamlNode& use,
                    int depth) {
    if (block.layers == nullptr) return standIn(use);
    if (depth == kNestedMax) {
      report_.error(use.key_place, fmt::format("block {} is within {} others: does it use itself?",
                                               inQuotes(name), kNestedMax));
      return block.layers->children.front();
    }
    const std::map<std::string, YamlNode> values = valuesOf(name, block, use);
    YamlNode layers = *block.layers;
    nodes_ += nodesOf(layers);
    if (nodes_ > yaml::kYamlNodesMax) {
      if (!too_many_)
        report_.error(
            use.key_place,
            fmt::format("with its blocks the model has more than {} values", yaml::kYamlNodesMax));
      too_many_ = true;
      return layers.children.front();
    }
    fill(layers, name, values);
    return asLayer(use, replaced(layers, depth + 1));
  }

  // Returns the value of each parameter: the use's, else the default.
  std::map<std::string, YamlNode> valuesOf(const std::string& name, const Template& block,
                                           const YamlNode& use) {
    std::map<std::string, YamlNode> values;
    if (!use.isNull() && !use.isMap()) yaml::reportType("a map", name, use, report_);
    for (const YamlNode& given : use.isMap() ? use.children : std::vector<YamlNode>()) {
      const auto known =
          std::any_of(block.parameters.begin(), block.parameters.end(),
                      [&given](const YamlNode& each) { return each.key == given.key; });
      if (known)
        values[given.key] = given;
      else if (!isOwnKey(given.key))
        report_.error(given.key_place, fmt::format("block {} has no parameter {}", inQuotes(name),
                                                   inQuotes(given.key)));
    }
    for (const YamlNode& parameter : block.parameters) {
      if (values.contains(parameter.key)) continue;
      if (parameter.isNull())
        report_.error(use.key_place, fmt::format("block {} needs its parameter {}", inQuotes(name),
                                                 inQuotes(parameter.key)));
      values[parameter.key] = parameter;
    }
    return values;
  }

  // Replaces each $NAME by its value.
  void fill(YamlNode& node, const std::string& block,
            const std::map<std::string, YamlNode>& values) {
    for (YamlNode& child : node.children) fill(child, block, values);
    if (!node.isScalar() || node.quoted || !node.text.starts_with('$')) return;
    const auto value = values.find(node.text.substr(1));
    if (value == values.end()) {
      report_.error(node.place, fmt::format("block {} has no parameter {}", inQuotes(block),
                                            inQuotes(node.text.substr(1))));
      return;
    }
    YamlNode filled = value->second;
    filled.key = node.key;
    filled.key_place = node.key_place;
    node = std::move(filled);
  }

  // Returns any layer, in place of a block that could not be read, which was reported there.
  static YamlNode standIn(const YamlNode& use) {
    YamlNode layer;
    layer.kind = YamlNode::Kind::kScalar;
    layer.text = "flatten";
    layer.place = layer.key_place = use.key_place;
    return layer;
  }

  // Returns the use as a layer with `layers` written out.
  static YamlNode asLayer(const YamlNode& use, YamlNode layers) {
    DTF_CHECK(layers.isSequence() && !layers.children.empty());
    std::vector<YamlNode> own;
    for (const YamlNode& given : use.children)
      if (isOwnKey(given.key)) own.push_back(given);
    const bool repeats = use.find("repeat") != nullptr;
    YamlNode layer;
    layer.kind = YamlNode::Kind::kMap;
    layer.place = layer.key_place = use.key_place;
    if (!repeats && layers.children.size() == 1) {
      layer.children = {named(layers.children[0], use)};
    } else {
      YamlNode block = use;
      block.kind = YamlNode::Kind::kMap;
      block.key = "block";
      layers.key = "layers";
      layers.key_place = use.key_place;
      block.children = {layers};
      layer.children = {block};
    }
    std::vector<YamlNode>& settings = layer.children[0].children;
    for (const YamlNode& given : own) {
      std::erase_if(settings, [&given](const YamlNode& each) { return each.key == given.key; });
      settings.push_back(given);
    }
    return layer;
  }

  // The only layer of a block: its type with its settings.
  static YamlNode named(const YamlNode& element, const YamlNode& use) {
    YamlNode layer = useOf(element);
    if (layer.isNull()) layer.kind = YamlNode::Kind::kMap;
    layer.key_place = use.key_place;
    return layer;
  }

  Report& report_;
  std::map<std::string, Template> templates_;
  size_t nodes_ = 0;
  bool too_many_ = false;
};

}  // namespace

constinit const yaml::Table kTemplateTable{"train.model.blocks.NAME", kTemplateKeys};

YamlNode withoutTemplates(const YamlNode& layers, const YamlNode& blocks, Report& report) {
  return Templates(blocks, report).replaced(layers, 0);
}

}  // namespace dtf::model
