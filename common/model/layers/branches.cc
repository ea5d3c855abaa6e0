// Layers that hold or join others: block (a list with a name, repeated), residual (a list beside a
// shortcut: He et al., CVPR 2016), add, multiply, concatenate.

#include <fmt/format.h>

#include <algorithm>

#include "common/base/text.h"
#include "common/model/activation.h"
#include "common/model/layer_builder.h"
#include "common/model/layers/layers.h"
#include "common/model/model_text.h"
#include "common/model/read_model.h"
#include "common/yaml/keys.h"

namespace dtf::model {

namespace {

constexpr yaml::Key kBlockKeys[] = {
    yaml::required(yaml::list("layers", "one after another")),
    yaml::whole("repeat", 1, 1000, "so often, each with variables of its own; default 1"),
};
constexpr yaml::Key kResidualKeys[] = {
    yaml::required(yaml::list("layers", "one after another")),
    yaml::list("shortcut", "layers from the input to the sum; default: the input itself"),
    yaml::choice("activation", kActivationNames, "", "activation of the sum; default none"),
};
constexpr yaml::Key kAddKeys[] = {
    yaml::required(yaml::list("with", "the layers to add to its input")),
};
constexpr yaml::Key kMultiplyKeys[] = {
    yaml::required(yaml::list("with", "the layers to multiply its input by")),
};
constexpr yaml::Key kConcatKeys[] = {
    yaml::required(yaml::list("with", "the layers to append to its input, along the channels")),
};
constinit const yaml::Table kBlockTable{"train.model.layers.N.block", kBlockKeys, &kAnyLayerTable};
constinit const yaml::Table kResidualTable{"train.model.layers.N.residual", kResidualKeys,
                                           &kAnyLayerTable};
constinit const yaml::Table kAddTable{"train.model.layers.N.add", kAddKeys, &kAnyLayerTable};
constinit const yaml::Table kMultiplyTable{"train.model.layers.N.multiply", kMultiplyKeys,
                                           &kAnyLayerTable};
constinit const yaml::Table kConcatTable{"train.model.layers.N.concatenate", kConcatKeys,
                                         &kAnyLayerTable};

bool anyDraws(const std::vector<LayerSpec>& layers) {
  return std::any_of(layers.begin(), layers.end(),
                     [](const LayerSpec& each) { return each.layer->drawsRandomNumbers(); });
}

bool anyLooksUp(const std::vector<LayerSpec>& layers) {
  return std::any_of(layers.begin(), layers.end(),
                     [](const LayerSpec& each) { return each.layer->looksUpFeatures(); });
}

using TextOf = std::string (*)(const LayerSpec&);

// A line for each layer, indented below `title`.
std::string listText(std::string title, const std::vector<LayerSpec>& layers, TextOf text_of) {
  for (const LayerSpec& each : layers)
    for (const std::string& line : split(text_of(each), '\n'))
      if (!line.empty()) title += "\n  " + line;
  return title;
}

class BlockLayer final : public Layer {
 public:
  BlockLayer(std::vector<LayerSpec> layers, int64_t repeat)
      : layers_(std::move(layers)), repeat_(repeat) {}

  graph::Output build(LayerBuilder& layers, graph::Output x) const override {
    if (repeat_ == 1) return layers.add(layers_, x);
    for (int64_t i = 0; i < repeat_; ++i) {
      const graph::Builder::Scope scope = layers.ops().nameScope(std::to_string(i));
      x = layers.add(layers_, x);
    }
    return x;
  }
  bool drawsRandomNumbers() const override { return anyDraws(layers_); }
  bool looksUpFeatures() const override { return anyLooksUp(layers_); }
  std::string meaning(std::string_view name) const override {
    return listText(title(name), layers_, layerMeaning);
  }
  std::string text(std::string_view name) const override {
    return listText(title(name), layers_, layerText);
  }

 private:
  std::string title(std::string_view name) const {
    return fmt::format("block {}: repeat={}", name, repeat_);
  }
  const std::vector<LayerSpec> layers_;
  const int64_t repeat_;
};

class ResidualLayer final : public Layer {
 public:
  ResidualLayer(std::vector<LayerSpec> layers, std::vector<LayerSpec> shortcut,
                Activation activation)
      : layers_(std::move(layers)), shortcut_(std::move(shortcut)), activation_(activation) {}

  graph::Output build(LayerBuilder& layers, graph::Output x) const override {
    const graph::Output y = layers.add(layers_, x);
    if (!shortcut_.empty()) {
      const graph::Builder::Scope scope = layers.ops().nameScope("shortcut");
      x = layers.add(shortcut_, x);
    }
    if (layers.shape(x) != layers.shape(y))
      layers.fail(fmt::format(
          "layer '{}': its layers give {}, its shortcut {}: both must be alike; "
          "a conv2d with kernel_size 1 as 'shortcut' changes channels and stride",
          layers.layerName(), layers.exampleShape(y).str(), layers.exampleShape(x).str()));
    return activate(layers.ops(), activation_, layers.ops().add(y, x));
  }
  bool drawsRandomNumbers() const override { return anyDraws(layers_) || anyDraws(shortcut_); }
  bool looksUpFeatures() const override { return anyLooksUp(layers_) || anyLooksUp(shortcut_); }
  std::string meaning(std::string_view name) const override { return textWith(name, layerMeaning); }
  std::string text(std::string_view name) const override { return textWith(name, layerText); }

 private:
  std::string textWith(std::string_view name, TextOf text_of) const {
    const std::string title = fmt::format("residual {}: activation={}", name, nameOf(activation_));
    const std::string body = listText(title, layers_, text_of);
    return shortcut_.empty() ? body : body + "\n" + listText("shortcut", shortcut_, text_of);
  }
  const std::vector<LayerSpec> layers_, shortcut_;
  const Activation activation_;
};

// Rejects a name that `with` lists twice, or that is the layer's input already.
void checkEachOnce(const LayerBuilder& layers, const std::vector<std::string>& with) {
  for (size_t i = 0; i < with.size(); ++i) {
    const bool is_input = with[i] == layers.inputName();
    if (is_input || std::find(with.begin(), with.begin() + static_cast<ptrdiff_t>(i), with[i]) !=
                        with.begin() + static_cast<ptrdiff_t>(i))
      layers.fail(fmt::format("layer '{}' takes {} twice: {}", layers.layerName(),
                              yaml::inQuotes(with[i]),
                              is_input ? "it is the layer's input already: take it out of 'with'"
                                       : "'with' names it so often"));
  }
}

// The operation of an ElementsLayer.
enum class Joint : uint8_t { kSum, kProduct };

template <Joint kJoint>
class ElementsLayer final : public Layer {
 public:
  explicit ElementsLayer(std::vector<std::string> with) : with_(std::move(with)) {}

  graph::Output build(LayerBuilder& layers, graph::Output x) const override {
    checkEachOnce(layers, with_);
    for (const std::string& name : with_) {
      const graph::Output other = layers.outputOf(name);
      if (layers.shape(other) != layers.shape(x))
        layers.fail(fmt::format("layer '{}' {} {}, an output of {}, {} one of {}",
                                layers.layerName(), kSums ? "adds" : "multiplies",
                                yaml::inQuotes(name), layers.exampleShape(other).str(),
                                kSums ? "to" : "by", layers.exampleShape(x).str()));
      x = kSums ? layers.ops().add(x, other) : layers.ops().mul(x, other);
    }
    return x;
  }
  std::string meaning(std::string_view) const override {
    return (kSums ? "add with=" : "multiply with=") + join(with_, ",");
  }

 private:
  static constexpr bool kSums = kJoint == Joint::kSum;
  const std::vector<std::string> with_;
};

// Joins its inputs along the last dimension, the channels.
class ConcatLayer final : public Layer {
 public:
  explicit ConcatLayer(std::vector<std::string> with) : with_(std::move(with)) {}

  graph::Output build(LayerBuilder& layers, graph::Output x) const override {
    checkEachOnce(layers, with_);
    std::vector<graph::Output> parts = {x};
    const Shape& shape = layers.shape(x);
    for (const std::string& name : with_) {
      parts.push_back(layers.outputOf(name));
      const Shape& other = layers.shape(parts.back());
      if (!std::equal(shape.dims().begin(), shape.dims().end() - 1, other.dims().begin(),
                      other.dims().empty() ? other.dims().end() : other.dims().end() - 1))
        layers.fail(
            fmt::format("layer '{}' puts {}, an output of {}, behind one of {}: all but "
                        "their channels must be alike",
                        layers.layerName(), yaml::inQuotes(name),
                        layers.exampleShape(parts.back()).str(), layers.exampleShape(x).str()));
    }
    return layers.ops().concat(std::move(parts), shape.rank() - 1);
  }
  std::string meaning(std::string_view) const override {
    return "concatenate with=" + join(with_, ",");
  }

 private:
  const std::vector<std::string> with_;
};

std::shared_ptr<const Layer> readBlock(const LayerType&, const yaml::MapReader& settings) {
  int64_t repeat = 1;
  settings.whole("repeat", repeat);
  return std::make_shared<const BlockLayer>(readLayers(settings, "layers"), repeat);
}

std::shared_ptr<const Layer> readResidual(const LayerType&, const yaml::MapReader& settings) {
  Activation activation = Activation::kNone;
  settings.choice("activation", activation);
  std::vector<LayerSpec> shortcut;
  if (settings.find("shortcut") != nullptr) shortcut = readLayers(settings, "shortcut");
  return std::make_shared<const ResidualLayer>(readLayers(settings, "layers"), std::move(shortcut),
                                               activation);
}

template <class Joined>
std::shared_ptr<const Layer> readJoined(const LayerType&, const yaml::MapReader& settings) {
  constexpr size_t kJoinedMax = 256;
  std::vector<std::string> with;
  const std::vector<yaml::YamlNode>& names = settings.list("with");
  const yaml::YamlNode* list = settings.find("with");
  if (list != nullptr && list->isSequence() && (names.empty() || names.size() > kJoinedMax))
    settings.report().error(
        list->where(),
        fmt::format("'with' must have from 1 to {} names, got {}", kJoinedMax, names.size()));
  for (const yaml::YamlNode& node : names)
    if (const auto name = yaml::readText(node, "with", settings.report())) with.push_back(*name);
  return std::make_shared<const Joined>(std::move(with));
}

}  // namespace

std::vector<LayerType> branchLayers() {
  return {{"block", "a list of layers under one name, repeated", &kBlockTable, readBlock},
          {"residual", "a list of layers, with its input added to their output", &kResidualTable,
           readResidual},
          {"add", "the sum of several layers", &kAddTable, readJoined<ElementsLayer<Joint::kSum>>},
          {"multiply", "the product of several layers, element by element", &kMultiplyTable,
           readJoined<ElementsLayer<Joint::kProduct>>},
          {"concatenate", "the channels of several layers, one after another", &kConcatTable,
           readJoined<ConcatLayer>}};
}

}  // namespace dtf::model
