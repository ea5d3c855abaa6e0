#include "common/model/read_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/graph/autodiff.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/graph/prune.h"
#include "common/yaml/keys.h"
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
constexpr int64_t kDimensionMax = kTensorElementsMax;
constexpr size_t kRankMax = 16;

constexpr Key kFileKeys[] = {
    yaml::required(yaml::list("ops", "each after those that it reads")),
    yaml::map("run", "what a step is"),
    yaml::map("pins", "devices by op: they win over what the op says"),
    yaml::boolean("soft_placement",
                  "an op whose device isn't there may run on another of its task"),
};
constexpr Key kRunKeys[] = {
    yaml::list("targets", "ops that run in each step"),
    yaml::list("fetches", "tensors whose values are printed"),
    yaml::map("feeds", "tensors and what they are fed: numbers, or features or labels of `data`"),
    yaml::map("data", "as train.data.train of a job; each step has a batch of it"),
    yaml::whole("steps", 1, yaml::kCountMax, "default 1"),
    yaml::whole("seed", 0, yaml::kSeedMax,
                "of the variables' first values and the order of the data; default 1"),
};
constexpr Key kScopeKeys[] = {
    yaml::text("name", "in front of the names within"),
    yaml::text("device", "of what is within, where that doesn't say otherwise"),
    yaml::required(yaml::list("ops", "")),
};
constexpr Key kGradientKeys[] = {
    yaml::required(yaml::text("loss", "a scalar")),
    yaml::required(yaml::list("of", "variables; the gradient of `w` is called NAME/w")),
    yaml::text("name", "default: gradient"),
};
constexpr yaml::Table kFileTable{"graph", kFileKeys};
constexpr yaml::Table kRunTable{"graph.run", kRunKeys};
constexpr yaml::Table kScopeTable{"graph.ops.N.scope", kScopeKeys};
constexpr yaml::Table kGradientTable{"graph.ops.N.gradients", kGradientKeys};

// What people write; the rest is put in by dtf, or belongs to a training job's optimizer.
bool isForPeople(std::string_view op) {
  const std::vector<AttributeDef>& attributes = graph::standardOps().find(op)->attributes;
  // A file has no functions: programs do (libdtf).
  const bool calls = std::any_of(attributes.begin(), attributes.end(), [](const auto& attribute) {
    return attribute.type == AttributeDef::Type::kFunction;
  });
  return op[0] != '_' && op != "ApplyGradient" && op != "ApplySparseGradient" && !calls;
}

// The names of all ops, "scope" and "gradients".
const yaml::Table& opTable() {
  static const std::vector<Key> keys = [] {
    std::vector<Key> all = {yaml::map("scope", ""), yaml::map("gradients", "")};
    for (const std::string_view op : graph::standardOps().names())
      if (isForPeople(op)) all.push_back(yaml::map(op, ""));
    return all;
  }();
  static const yaml::Table table{"graph.ops.N", keys};
  return table;
}

Key keyOf(const AttributeDef& attribute) {
  const std::string_view name = attribute.name;
  Key key;
  switch (attribute.type) {
    case AttributeDef::Type::kBool:
      key = yaml::boolean(name, "");
      break;
    case AttributeDef::Type::kInt:
      key = yaml::whole(name, -yaml::kCountMax, yaml::kCountMax, "");
      break;
    case AttributeDef::Type::kDouble:
      key = yaml::number(name, {-1e38, 1e38, false, false}, "");
      break;
    case AttributeDef::Type::kString:
      key = yaml::text(name, "");
      break;
    case AttributeDef::Type::kDType:
      key = yaml::choice(name, "float32|uint8|int32|int64", "", "");
      break;
    case AttributeDef::Type::kShape:
      key = yaml::list(name, "");
      key.whole_max = kDimensionMax;
      break;
    case AttributeDef::Type::kFunction:
      DTF_CHECK_MSG(false, attribute.name);
  }
  key.required = attribute.required;
  return key;
}

// Reads one file.
// Borrows: the report.
class GraphReader {
 public:
  explicit GraphReader(Report& report) : report_(report) {}

  GraphSpec read(const YamlNode& file) {
    const MapReader reader(file, kFileTable, "", report_);
    readPins(reader);
    reader.boolean("soft_placement", spec_.soft_placement);
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

  // ---- ops

  void readOps(const MapReader& reader, int depth) {
    for (const YamlNode& node : reader.list("ops")) {
      const auto op = yaml::readAlternative(node, opTable(), "op", report_);
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
    const MapReader reader(node, kScopeTable, "scope", report_);
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
    for (const AttributeDef& attribute : def.attributes) keys.push_back(keyOf(attribute));
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
      case AttributeDef::Type::kFunction:
        break;  // isForPeople() has left it out
    }
    DTF_CHECK_MSG(false, attribute.name);
  }

  void readGradients(const YamlNode& node) {
    const MapReader reader(node, kGradientTable, "gradients", report_);
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
    const MapReader reader(node, kRunTable, "run", report_);
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
  GraphSpec spec = GraphReader(report).read(*file);
  report.throwIfAny();
  return spec;
}

}  // namespace dtf::model
