#include "common/model/graph_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/graph/autodiff.h"
#include "common/graph/prune.h"
#include "common/model/graph_file_schema.h"

namespace dtf::model {

using graph::AttributeDef;
using graph::NodeId;
using graph::Output;
using yaml::Key;
using yaml::MapReader;
using yaml::Report;
using yaml::YamlNode;

namespace {

constexpr size_t kOpsMax = 10'000;
constexpr int kScopeDepthMax = 16;
constexpr int64_t kTensorElementsMax = int64_t{1} << 31;  // of one tensor, or one example: 8 GiB
constexpr size_t kRankMax = 16;
constexpr std::string_view kBatchWord = "batch";

std::vector<std::pair<std::string, const YamlNode*>> texts(const MapReader& reader,
                                                           std::string_view key) {
  std::vector<std::pair<std::string, const YamlNode*>> all;
  for (const YamlNode& node : reader.list(key))
    if (const auto text = yaml::readText(node, key, reader.report()))
      all.emplace_back(*text, &node);
  return all;
}

// Applies `find` to each name of the list; nullopt if it finds none for one of them, which is
// reported.
template <class Find>
auto resolve(const MapReader& reader, std::string_view key, const Find& find) {
  std::vector<typename std::invoke_result_t<Find, std::string, yaml::Place>::value_type> found;
  bool all = true;
  for (const auto& [name, node] : texts(reader, key)) {
    const auto one = find(name, node->where());
    if (one) found.push_back(*one);
    all = all && one.has_value();
  }
  return all ? std::optional(std::move(found)) : std::nullopt;
}

// Whether it is one of the words for a size that isn't known yet.
bool isOpenSize(const YamlNode& node) {
  constexpr std::string_view kWords[] = {"-1", "None", "none", "null", "~", "?"};
  return node.isNull() || (node.isScalar() && std::find(std::begin(kWords), std::end(kWords),
                                                        node.text) != std::end(kWords));
}

// Replaces a size of -1 by its value. Returns why the sizes can't be a tensor's; empty if they can.
std::string faultOf(std::vector<int64_t>& dims, const Shape* reshaped) {
  int64_t elements = 1;  // of the other sizes
  // Both factors are at most 2^31 + 1: no overflow.
  for (const int64_t dim : dims)
    elements = std::min(elements * std::max<int64_t>(dim, 1), kTensorElementsMax + 1);
  if (elements > kTensorElementsMax || dims.size() > kRankMax)
    return fmt::format("has more than {} elements, or than {} dimensions", kTensorElementsMax,
                       kRankMax);
  const auto open = std::find(dims.begin(), dims.end(), -1);
  if (open == dims.end()) return "";
  DTF_CHECK(reshaped != nullptr);  // only a Reshape may have a size of -1
  if (std::find(open + 1, dims.end(), -1) != dims.end()) return "has more than one size of -1";
  if (std::find(dims.begin(), dims.end(), 0) != dims.end() || reshaped->elements() % elements != 0)
    return fmt::format("leaves no whole number for -1: the input is {}", reshaped->str());
  *open = reshaped->elements() / elements;
  return "";
}

}  // namespace

GraphReader::GraphReader(Report& report, std::optional<int64_t> batch)
    : report_(report),
      batch_(batch),
      functions_(std::make_shared<Functions>()),
      graph_(graph::standardOps()),
      builder_(graph_) {
  DTF_CHECK(!batch || *batch > 0);
}

GraphReader::GraphReader(GraphReader& outer)
    : report_(outer.report_),
      batch_(outer.batch_),
      functions_(outer.functions_),
      graph_(graph::standardOps()),
      builder_(graph_),
      ops_(outer.ops_) {}

Output GraphReader::addInput(std::string_view name, const graph::TensorSpec& spec) {
  return builder_.placeholder(name, spec.dtype, spec.shape);
}

void GraphReader::read(const MapReader& reader) {
  for (const YamlNode& function : reader.list("functions")) readFunction(function);
  readOps(reader, 0);
  checkPins();
}

// ---- functions

void GraphReader::readFunction(const YamlNode& node) {
  const MapReader reader(node, kGraphFunctionTable, "functions", report_);
  std::string name;
  if (!reader.text("name", name)) return leaveGap();
  if (functions_->contains(name)) {
    report_.error(reader.find("name")->where(),
                  fmt::format("there are two functions {}", yaml::inQuotes(name)));
    return leaveGap();
  }
  GraphReader own(*this);
  const graph::FunctionRef function = own.takeFunction(node, reader);
  ops_ = own.ops_;
  (*functions_)[name] = function;  // null: an op that calls it isn't reported too
  if (function == nullptr) leaveGap();
}

// Returns null after a reported mistake.
graph::FunctionRef GraphReader::takeFunction(const YamlNode& node, const MapReader& reader) {
  std::vector<NodeId> parameters;
  for (const YamlNode& parameter : reader.list("parameters")) readParameter(parameter, parameters);
  readOps(reader, 0);
  const std::optional<std::vector<Output>> results = tensors(reader, "results");
  graph::FunctionRef made;
  if (results && !has_gaps_)
    attempt(node, [&] {
      made = graph::Function::make(std::move(graph_), std::move(parameters), *results);
    });
  return made;
}

void GraphReader::readParameter(const YamlNode& node, std::vector<NodeId>& parameters) {
  const MapReader reader(node, kGraphParameterTable, "parameters", report_);
  std::string name;
  DType dtype = DType::kFloat32;
  if (!reader.text("name", name)) return leaveGap();
  reader.choice("dtype", dtype, static_cast<int>(DType::kFloat32));
  const bool has_shape = reader.find("shape") != nullptr;
  const std::optional<Shape> shape = readShape(reader, kGraphParameterTable.at("shape"), nullptr);
  if (has_shape && !shape) return leaveGap();
  attempt(node, [&] {
    parameters.push_back(builder_.placeholder(name, dtype, shape.value_or(Shape())).node);
  });
}

// ---- ops

void GraphReader::readOps(const MapReader& reader, int depth) {
  for (const YamlNode& node : reader.list("ops")) {
    const auto op = yaml::readAlternative(node, graphOpTable(), "op", report_);
    if (!op) {
      leaveGap();
      continue;
    }
    const YamlNode& settings = op->settings;
    if (++ops_ > kOpsMax) {
      report_.error(settings.key_place, fmt::format("there are more than {} ops", kOpsMax));
      return;
    }
    if (op->key->name == "scope") {
      readScope(settings, depth);
    } else if (op->key->name == "gradients") {
      readGradients(settings);
    } else if (op->key->name == "minimize") {
      readMinimize(settings);
    } else {
      readOp(std::string(op->key->name), settings);
    }
  }
}

void GraphReader::readScope(const YamlNode& node, int depth) {
  const MapReader reader(node, kGraphScopeTable, "scope", report_);
  if (depth == kScopeDepthMax)
    return report_.error(node.key_place, fmt::format("scopes are at most {} deep", kScopeDepthMax));
  std::string name, device;
  reader.text("name", name);
  reader.text("device", device);
  attempt(node, [&] {
    const auto devices = builder_.deviceScope(device);
    if (name.empty()) return readOps(reader, depth + 1);
    const auto names = builder_.nameScope(name);
    readOps(reader, depth + 1);
  });
}

void GraphReader::readOp(const std::string& op, const YamlNode& node) {
  DTF_CHECK_MSG(graph::standardOps().find(op) != nullptr, op);
  const graph::OpDef& def = *graph::standardOps().find(op);
  // The other ops have a default name, such as MatMul.
  const bool needs_name = op == "Variable" || op == "Placeholder";
  const Key name = yaml::text("name", "by which others read it");
  const std::string_view waits_for = waitsForKey(def);
  std::vector<Key> keys = {needs_name ? yaml::required(name) : name, yaml::list("inputs", ""),
                           yaml::list(waits_for, ""), yaml::text("device", "")};
  for (const AttributeDef& attribute : def.attributes) keys.push_back(graphKeyOf(attribute));
  const yaml::Table table{"graph.ops.N.OP", keys};
  const MapReader reader(node, table, op, report_);
  std::optional<std::vector<Output>> inputs = tensors(reader, "inputs");
  std::optional<std::vector<NodeId>> after = nodes(reader, waits_for);
  graph::Attributes attributes;
  const bool is_reshape = op == "Reshape" && inputs && inputs->size() == 1;
  const Shape* const reshaped = is_reshape ? &graph_.spec(inputs->front()).shape : nullptr;
  bool has_attributes = true;
  for (const AttributeDef& attribute : def.attributes)
    has_attributes =
        readAttribute(attribute, reader, table.at(attribute.name), reshaped, attributes) &&
        has_attributes;
  if (!inputs || !after || !has_attributes || (needs_name && reader.find("name") == nullptr))
    return leaveGap();
  addOp(op, node, reader, *std::move(inputs), std::move(attributes), *std::move(after));
}

void GraphReader::addOp(const std::string& op, const YamlNode& node, const MapReader& reader,
                        std::vector<Output> inputs, graph::Attributes attributes,
                        std::vector<NodeId> after) {
  std::string name, device;
  reader.text("name", name);
  reader.text("device", device);
  attempt(node, [&] {
    const auto own = builder_.deviceScope(device);
    const std::string full = builder_.namePrefix() + name;
    const auto pin = std::find_if(pins_.begin(), pins_.end(),
                                  [&](const YamlNode& each) { return each.key == full; });
    const auto pinned = builder_.deviceScope(pin == pins_.end() ? "" : pin->text);
    const NodeId id =
        builder_.node(op, std::move(inputs), std::move(attributes), name, std::move(after));
    marks_[graph_.node(id).name] = report_.markOf(node.key_place);
  });
}

// Returns false after a reported mistake.
bool GraphReader::readAttribute(const AttributeDef& attribute, const MapReader& reader,
                                const Key& key, const Shape* reshaped,
                                graph::Attributes& attributes) {
  const auto put = [&](bool was_read, auto value) {
    if (was_read) attributes.emplace(attribute.name, std::move(value));
    return was_read || (!attribute.required && reader.find(key.name) == nullptr);
  };
  // `read` sets its argument.
  const auto readInto = [&](auto value, const auto& read) {
    const bool was_read = read(value);
    return put(was_read, std::move(value));
  };
  switch (attribute.type) {
    case AttributeDef::Type::kBool:
      return readInto(false, [&](bool& value) { return reader.boolean(key.name, value); });
    case AttributeDef::Type::kInt:
      return readInto(int64_t{0}, [&](int64_t& value) { return reader.whole(key.name, value); });
    case AttributeDef::Type::kDouble:
      return readInto(0.0, [&](double& value) { return reader.number(key.name, value); });
    case AttributeDef::Type::kString:
      return readInto(std::string(),
                      [&](std::string& value) { return reader.text(key.name, value); });
    case AttributeDef::Type::kDType:
      static_assert(static_cast<int>(DType::kFloat32) + 3 == static_cast<int>(DType::kInt64));
      return readInto(DType::kFloat32, [&](DType& value) {
        return reader.choice(key.name, value, static_cast<int>(DType::kFloat32));
      });
    case AttributeDef::Type::kShape: {
      const std::optional<Shape> value = readShape(reader, key, reshaped);
      return put(value.has_value(), value.value_or(Shape()));
    }
    case AttributeDef::Type::kFunction: {
      const YamlNode* const called = reader.find(key.name);
      const graph::FunctionRef function = called == nullptr ? nullptr : findFunction(*called);
      return put(function != nullptr, function);
    }
  }
  DTF_CHECK_MSG(false, attribute.name);
}

// TensorFlow's habits: an open size of a placeholder, the last axis as -1.
void GraphReader::reportOpenSize(const Key& key, const YamlNode& node) {
  std::string instead = "axes count from 0: name the last one by its number";
  if (key.name != "axes" && batch_)
    instead = fmt::format(
        "shapes have no open size: write `{}` for the size of the batch, a number "
        "for any other",
        kBatchWord);
  else if (key.name != "axes")
    instead =
        "shapes have no open size: write the number itself, such as the examples of a step's batch";
  report_.error(node.where(),
                fmt::format("'{}' can't have {}; {}", key.name,
                            node.isNull() ? "null" : yaml::inQuotes(node.text), instead));
}

// `reshaped`: the input's shape if the op is a Reshape. Then one size may be -1, as in TensorFlow.
std::optional<Shape> GraphReader::readShape(const MapReader& reader, const Key& key,
                                            const Shape* reshaped) {
  const YamlNode* const list = reader.find(key.name);
  if (list == nullptr) return std::nullopt;
  Key bounds = key;
  if (reshaped != nullptr) bounds.whole_min = -1;
  std::vector<int64_t> dims;
  for (const YamlNode& node : reader.list(key.name)) {
    if (reshaped == nullptr && isOpenSize(node)) {
      reportOpenSize(key, node);
      return std::nullopt;
    }
    const bool is_batch = batch_ && node.isScalar() && node.text == kBatchWord;
    const auto dim = is_batch ? batch_ : yaml::readWhole(node, bounds, report_);
    if (!dim) return std::nullopt;
    dims.push_back(*dim);
  }
  if (!list->isSequence()) return std::nullopt;
  const std::string fault = faultOf(dims, reshaped);
  if (fault.empty()) return Shape(std::move(dims));
  report_.error(list->where(), fmt::format("'{}' {}", key.name, fault));
  return std::nullopt;
}

void GraphReader::readGradients(const YamlNode& node) {
  const MapReader reader(node, kGraphGradientTable, "gradients", report_);
  std::string name = "gradient", loss;
  reader.text("name", name);
  const std::optional<std::vector<Output>> of = tensors(reader, "of");
  if (!reader.text("loss", loss) || !of) return leaveGap();
  const std::optional<Output> output = findTensor(loss, reader.find("loss")->where());
  if (!output) return leaveGap();
  attempt(node, [&] {
    const std::vector<Output> gradients = graph::addGradients(graph_, *output, *of);
    DTF_CHECK(gradients.size() == of->size());
    for (size_t i = 0; i < gradients.size(); ++i) {
      const NodeId id = builder_.node("Identity", {gradients[i]}, {},
                                      name + "/" + graph_.node((*of)[i].node).name);
      marks_[graph_.node(id).name] = report_.markOf(node.key_place);
    }
  });
}

// ---- names

// Returns null if there is none; reports that, unless the function could not be read.
graph::FunctionRef GraphReader::findFunction(const YamlNode& node) {
  const auto name = yaml::readText(node, node.key, report_);
  if (!name) return nullptr;
  const auto at = functions_->find(*name);
  if (at != functions_->end()) return at->second;
  std::vector<std::string_view> names;
  for (const auto& [other, function] : *functions_) names.push_back(other);
  const std::string nearest = nearestWord(*name, names);
  report_.error(node.where(),
                fmt::format("there is no function {}{}", yaml::inQuotes(*name),
                            nearest.empty() ? "" : fmt::format(" - did you mean '{}'?", nearest)));
  return nullptr;
}

std::optional<std::vector<Output>> GraphReader::tensors(const MapReader& reader,
                                                        std::string_view key) {
  return resolve(reader, key, [this](const std::string& name, const yaml::Place& place) {
    return findTensor(name, place);
  });
}

std::optional<std::vector<NodeId>> GraphReader::nodes(const MapReader& reader,
                                                      std::string_view key) {
  return resolve(reader, key, [this](const std::string& name, const yaml::Place& place) {
    return findNode(name, place);
  });
}

std::optional<Output> GraphReader::findTensor(const std::string& name, const yaml::Place& place) {
  const std::string node = name.substr(0, name.rfind(':'));
  const bool is_there = graph_.find(name) != nullptr || graph_.find(node) != nullptr;
  return look(is_there, place, [&] { return graph::findTensor(graph_, name); });
}

std::optional<NodeId> GraphReader::findNode(const std::string& name, const yaml::Place& place) {
  return look(graph_.find(name) != nullptr, place, [&] { return graph::findNode(graph_, name); });
}

// A missing op isn't reported if one could not be read: it may be that one.
template <class Find>
auto GraphReader::look(bool is_there, const yaml::Place& place, const Find& find)
    -> std::optional<std::invoke_result_t<Find>> {
  if (has_gaps_ && !is_there) return std::nullopt;
  try {
    return find();
  } catch (const Error& error) {
    report_.error(place, error.message());
    leaveGap();
    return std::nullopt;
  }
}

template <class Action>
void GraphReader::attempt(const YamlNode& node, const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    report_.error(node.key_place, error.message());
    leaveGap();
  }
}

// ---- pins

void GraphReader::setPins(const YamlNode& pins) {
  for (const YamlNode& pin : pins.children)
    if (yaml::readText(pin, pin.key, report_)) pins_.push_back(pin);
}

void GraphReader::checkPins() {
  for (const YamlNode& pin : pins_)
    if (!has_gaps_ && !marks_.contains(pin.key))
      report_.error(pin.key_place,
                    fmt::format("there is no op {} to pin", yaml::inQuotes(pin.key)));
}

}  // namespace dtf::model
