#include "common/model/read_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/graph/autodiff.h"
#include "common/graph/builder.h"
#include "common/graph/function.h"
#include "common/graph/op_def.h"
#include "common/graph/prune.h"
#include "common/model/graph_file_schema.h"
#include "common/yaml/map_reader.h"

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
constexpr int64_t kTensorElementsMax = int64_t{1} << 31;  // of one tensor: 8 GiB
constexpr size_t kRankMax = 16;

using Functions = std::map<std::string, graph::FunctionRef, std::less<>>;

// Reads one file, or with a reader of its own a function in it.
// Borrows: the report, and the functions that are there already.
class GraphReader {
 public:
  GraphReader(Report& report, Functions& functions) : report_(report), functions_(functions) {}

  GraphSpec read(const YamlNode& file) {
    const MapReader reader(file, kGraphFileTable, "", report_);
    readPins(reader);
    reader.boolean("soft_placement", spec_.soft_placement);
    for (const YamlNode& function : reader.list("functions")) readFunction(function);
    readOps(reader, 0);
    for (const YamlNode& pin : pins_)
      if (!has_gaps_ && !spec_.marks.contains(pin.key))
        report_.error(pin.key_place,
                      fmt::format("there is no op {} to pin", yaml::inQuotes(pin.key)));
    if (const YamlNode* run = reader.find("run")) readRun(*run);
    DTF_CHECK(!report_.empty() || !has_gaps_);  // what is missing was told
    return std::move(spec_);
  }

 private:
  // ---- lists

  std::vector<std::pair<std::string, const YamlNode*>> texts(const MapReader& reader,
                                                             std::string_view key) {
    std::vector<std::pair<std::string, const YamlNode*>> all;
    for (const YamlNode& node : reader.list(key))
      if (const auto text = yaml::readText(node, key, report_)) all.emplace_back(*text, &node);
    return all;
  }

  std::optional<Shape> readShape(const MapReader& reader, const Key& key) {
    std::vector<int64_t> dims;
    const YamlNode* const list = reader.find(key.name);
    if (list == nullptr) return std::nullopt;
    int64_t elements = 1;
    for (const YamlNode& node : reader.list(key.name)) {
      const auto dim = yaml::readWhole(node, key, report_);
      if (!dim) return std::nullopt;
      dims.push_back(*dim);
      // What is left out of the product is no more than 2^31, and so is the product: no overflow.
      elements = std::min(elements * std::max<int64_t>(*dim, 1), kTensorElementsMax + 1);
    }
    if (!list->isSequence()) return std::nullopt;
    if (elements > kTensorElementsMax || dims.size() > kRankMax) {
      report_.error(list->where(),
                    fmt::format("'{}' has more than {} elements, or than {} dimensions", key.name,
                                kTensorElementsMax, kRankMax));
      return std::nullopt;
    }
    return Shape(std::move(dims));
  }

  // ---- functions

  void readFunction(const YamlNode& node) {
    const MapReader reader(node, kGraphFunctionTable, "functions", report_);
    std::string name;
    if (!reader.text("name", name)) return leaveGap();
    if (functions_.contains(name)) {
      report_.error(reader.find("name")->where(),
                    fmt::format("there are two functions {}", yaml::inQuotes(name)));
      return leaveGap();
    }
    GraphReader own(report_, functions_);
    own.ops_ = ops_;
    const graph::FunctionRef function = own.takeFunction(node, reader);
    ops_ = own.ops_;
    functions_[name] = function;  // null: those that call it aren't told that it isn't there
    if (function == nullptr) leaveGap();
  }

  // Null where something was reported.
  graph::FunctionRef takeFunction(const YamlNode& node, const MapReader& reader) {
    std::vector<NodeId> parameters;
    for (const YamlNode& parameter : reader.list("parameters"))
      readParameter(parameter, parameters);
    readOps(reader, 0);
    const std::optional<std::vector<Output>> results = tensors(reader, "results");
    graph::FunctionRef made;
    if (results && !has_gaps_)
      attempt(node, [&] {
        made = graph::Function::make(std::move(spec_.graph), std::move(parameters), *results);
      });
    return made;
  }

  void readParameter(const YamlNode& node, std::vector<NodeId>& parameters) {
    const MapReader reader(node, kGraphParameterTable, "parameters", report_);
    std::string name;
    DType dtype = DType::kFloat32;
    if (!reader.text("name", name)) return leaveGap();
    reader.choice("dtype", dtype, static_cast<int>(DType::kFloat32));
    const bool has_shape = reader.find("shape") != nullptr;
    const std::optional<Shape> shape = readShape(reader, kGraphParameterTable.at("shape"));
    if (has_shape && !shape) return leaveGap();
    attempt(node, [&] {
      parameters.push_back(builder_.placeholder(name, dtype, shape.value_or(Shape())).node);
    });
  }

  // ---- ops

  void readOps(const MapReader& reader, int depth) {
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
      } else {
        readOp(std::string(op->key->name), settings);
      }
    }
  }

  void readScope(const YamlNode& node, int depth) {
    const MapReader reader(node, kGraphScopeTable, "scope", report_);
    if (depth == kScopeDepthMax)
      return report_.error(node.key_place,
                           fmt::format("scopes are at most {} deep", kScopeDepthMax));
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

  void readOp(const std::string& op, const YamlNode& node) {
    DTF_CHECK_MSG(graph::standardOps().find(op) != nullptr, op);
    const graph::OpDef& def = *graph::standardOps().find(op);
    std::vector<Key> keys = {yaml::text("name", ""), yaml::list("inputs", ""),
                             yaml::list("after", ""), yaml::text("device", "")};
    for (const AttributeDef& attribute : def.attributes) keys.push_back(graphKeyOf(attribute));
    const yaml::Table table{"graph.ops.N.OP", keys};
    const MapReader reader(node, table, op, report_);
    std::string name, device;
    reader.text("name", name);
    reader.text("device", device);
    const std::optional<std::vector<Output>> inputs = tensors(reader, "inputs");
    const std::optional<std::vector<NodeId>> after = nodes(reader, "after");
    graph::Attributes attributes;
    const size_t mistakes = mistakes_;
    for (const AttributeDef& attribute : def.attributes)
      readAttribute(attribute, reader, table.at(attribute.name), attributes);
    if (!inputs || !after || mistakes != mistakes_) return leaveGap();
    attempt(node, [&] {
      const auto own = builder_.deviceScope(device);
      const std::string full = builder_.namePrefix() + name;
      const auto pin = std::find_if(pins_.begin(), pins_.end(),
                                    [&](const YamlNode& each) { return each.key == full; });
      const auto pinned = builder_.deviceScope(pin == pins_.end() ? "" : pin->text);
      const NodeId id = builder_.node(op, *inputs, std::move(attributes), name, *after);
      spec_.marks[spec_.graph.node(id).name] = report_.markOf(node.key_place);
    });
  }

  void readAttribute(const AttributeDef& attribute, const MapReader& reader, const Key& key,
                     graph::Attributes& attributes) {
    const auto put = [&](bool was_read, auto value) {
      if (was_read) attributes.emplace(attribute.name, std::move(value));
      if (!was_read && (attribute.required || reader.find(key.name) != nullptr)) ++mistakes_;
    };
    // `read` sets the value that it is given.
    const auto readInto = [&](auto value, const auto& read) {
      const bool was_read = read(value);
      put(was_read, std::move(value));
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
        const std::optional<Shape> value = readShape(reader, key);
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

  // Null where there is none, which is reported unless it could not be read.
  graph::FunctionRef findFunction(const YamlNode& node) {
    const auto name = yaml::readText(node, node.key, report_);
    if (!name) return nullptr;
    const auto at = functions_.find(*name);
    if (at != functions_.end()) return at->second;
    std::vector<std::string_view> names;
    for (const auto& [other, function] : functions_) names.push_back(other);
    const std::string nearest = nearestWord(*name, names);
    report_.error(
        node.where(),
        fmt::format("there is no function {}{}", yaml::inQuotes(*name),
                    nearest.empty() ? "" : fmt::format(" - did you mean '{}'?", nearest)));
    return nullptr;
  }

  void readGradients(const YamlNode& node) {
    const MapReader reader(node, kGraphGradientTable, "gradients", report_);
    std::string name = "gradient", loss;
    reader.text("name", name);
    const std::optional<std::vector<Output>> of = tensors(reader, "of");
    if (!reader.text("loss", loss) || !of) return leaveGap();
    const std::optional<Output> output = findTensor(loss, reader.find("loss")->where());
    if (!output) return leaveGap();
    attempt(node, [&] {
      const std::vector<Output> gradients = graph::addGradients(spec_.graph, *output, *of);
      DTF_CHECK(gradients.size() == of->size());
      for (size_t i = 0; i < gradients.size(); ++i) {
        const NodeId id = builder_.node("Identity", {gradients[i]}, {},
                                        name + "/" + spec_.graph.node((*of)[i].node).name);
        spec_.marks[spec_.graph.node(id).name] = report_.markOf(node.key_place);
      }
    });
  }

  // ---- names

  // All that `find` makes of the names in the list. nullopt: one of them isn't there, which is reported.
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

  std::optional<std::vector<Output>> tensors(const MapReader& reader, std::string_view key) {
    return resolve(reader, key, [this](const std::string& name, const yaml::Place& place) {
      return findTensor(name, place);
    });
  }
  std::optional<std::vector<NodeId>> nodes(const MapReader& reader, std::string_view key) {
    return resolve(reader, key, [this](const std::string& name, const yaml::Place& place) {
      return findNode(name, place);
    });
  }

  std::optional<Output> findTensor(const std::string& name, const yaml::Place& place) {
    const std::string node = name.substr(0, name.rfind(':'));
    const bool is_there = spec_.graph.find(name) != nullptr || spec_.graph.find(node) != nullptr;
    return look(is_there, place, [&] { return graph::findTensor(spec_.graph, name); });
  }
  std::optional<NodeId> findNode(const std::string& name, const yaml::Place& place) {
    return look(spec_.graph.find(name) != nullptr, place,
                [&] { return graph::findNode(spec_.graph, name); });
  }

  // Of an op that could not be read nobody is told that it isn't there.
  template <class Find>
  auto look(bool is_there, const yaml::Place& place, const Find& find)
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

  void leaveGap() { has_gaps_ = true; }

  template <class Action>
  void attempt(const YamlNode& node, const Action& action) {
    try {
      action();
    } catch (const Error& error) {
      report_.error(node.key_place, error.message());
      leaveGap();
    }
  }

  // ---- the rest

  void readPins(const MapReader& reader) {
    const YamlNode* const pins = reader.find("pins");
    if (pins == nullptr) return;
    for (const YamlNode& pin : pins->children) {
      if (const auto device = yaml::readText(pin, pin.key, report_)) pins_.push_back(pin);
    }
  }

  void readRun(const YamlNode& node) {
    const MapReader reader(node, kGraphRunTable, "run", report_);
    reader.whole("steps", spec_.steps);
    reader.whole("seed", spec_.seed);
    readFeeds(reader);
    for (const auto& [name, at] : texts(reader, "targets"))
      if (findNode(name, at->where())) spec_.targets.push_back(name);
    for (const auto& [name, at] : texts(reader, "fetches"))
      if (findTensor(name, at->where())) spec_.fetches.push_back(name);
  }

  void readFeeds(const MapReader& run) {
    const YamlNode* const data = run.find("data");
    if (data != nullptr) spec_.data = *data;
    bool is_read = false;
    if (const YamlNode* const feeds = run.find("feeds")) {
      for (const YamlNode& node : feeds->children) {
        const std::optional<Output> output = findTensor(node.key, node.key_place);
        if (!output) continue;
        auto feed = readGraphFeed(node, spec_.graph.spec(*output), report_);
        if (!feed) continue;
        is_read = is_read || !feed->part.empty();
        if (!feed->part.empty() && data == nullptr)
          report_.error(node.where(),
                        fmt::format("'{}' is fed {} of 'data', which 'run' doesn't have", node.key,
                                    feed->part));
        spec_.feeds.push_back(*std::move(feed));
      }
    }
    if (data != nullptr && !is_read && report_.empty())
      report_.error(data->key_place, "nothing is fed features or labels of 'data'");
  }

  Report& report_;
  Functions& functions_;
  GraphSpec spec_{.graph = graph::Graph(graph::standardOps()),
                  .marks = {},
                  .targets = {},
                  .fetches = {},
                  .feeds = {},
                  .data = {}};
  graph::Builder builder_{spec_.graph};
  std::vector<YamlNode> pins_;  // op: device
  size_t ops_ = 0;
  size_t mistakes_ = 0;    // in attributes
  bool has_gaps_ = false;  // some op could not be read: others may name it
};

}  // namespace

GraphSpec readGraphFile(const std::filesystem::path& path, Report& report) {
  const std::optional<YamlNode> file = yaml::parseYamlFile(path, nullptr, report);
  report.throwIfAny();
  DTF_CHECK(file.has_value());
  Functions functions;
  GraphSpec spec = GraphReader(report, functions).read(*file);
  report.throwIfAny();
  return spec;
}

}  // namespace dtf::model
