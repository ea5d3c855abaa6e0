#include "common/cluster/override.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>

#include "common/base/check.h"
#include "common/base/text.h"
#include "common/cluster/schema.h"

namespace dtf::cluster {

using yaml::inQuotes;
using yaml::parseYaml;
using yaml::Place;
using yaml::Report;
using yaml::YamlNode;

namespace {

constexpr size_t kPathKeysMax = 16;

std::string pathText(const Override& change, size_t keys) {
  return inQuotes(join(std::span(change.path).first(keys), "."));
}

// Values of an override have no line: their place is the flag.
void moveTo(YamlNode& node, const Place& place) {
  node.place = node.key_place = place;
  for (YamlNode& child : node.children) moveTo(child, place);
}

YamlNode makeMap(const std::string& key, const Place& place) {
  YamlNode node;
  node.kind = YamlNode::Kind::kMap;
  node.key = key;
  node.place = node.key_place = place;
  return node;
}

// Returns the element of `list` at the path's index; appends the next one. nullptr: reported.
YamlNode* element(YamlNode& list, const Override& change, size_t depth, Report& report) {
  DTF_CHECK(list.isSequence() && depth < change.path.size());
  const std::string& index_text = change.path[depth];
  const size_t size = list.children.size();
  size_t index = 0;
  const char* end = index_text.data() + index_text.size();
  const auto [stop, error] = std::from_chars(index_text.data(), end, index);
  if (error != std::errc() || stop != end || index > size) {
    report.error(change.place,
                 fmt::format("{} is a list of {}: expected an index from 0 to {}, got {}",
                             pathText(change, depth), size, size, inQuotes(index_text)));
    return nullptr;
  }
  if (index == size) list.children.push_back(makeMap("", change.place));
  return &list.children[index];
}

// Returns the child of `node` that the path names, made if missing. nullptr: reported.
YamlNode* step(YamlNode& node, const Override& change, size_t depth, Report& report) {
  const std::string& key = change.path.at(depth);
  DTF_CHECK(!key.empty());
  if (node.isSequence()) return element(node, change, depth, report);
  if (node.isNull()) node.kind = YamlNode::Kind::kMap;
  if (node.isScalar() && node.text == key) {
    // `optimizer: adam` is short for `optimizer: {adam: }`.
    YamlNode child = makeMap(key, node.place);
    node.kind = YamlNode::Kind::kMap;
    node.text.clear();
    node.children.push_back(std::move(child));
  }
  if (node.isScalar() && schema::kOptimizers.find(node.text) && schema::kOptimizers.find(key)) {
    report.error(change.place,
                 fmt::format("the file chooses the optimizer {}: to use {}, choose it first, --set "
                             "{}={}",
                             inQuotes(node.text), inQuotes(key), schema::kOptimizers.path, key));
    return nullptr;
  }
  const bool is_optimizer =
      join(std::span(change.path).first(depth), ".") == schema::kOptimizers.path;
  if (node.isScalar() && is_optimizer && schema::kOptimizers.find(node.text)) {
    report.error(
        change.place,
        fmt::format("{} is no optimizer: settings of {} are below its name, --set "
                    "{}.{}.{}=VALUE",
                    inQuotes(key), inQuotes(node.text), schema::kOptimizers.path, node.text, key));
    return nullptr;
  }
  if (node.isScalar()) {
    report.error(change.place,
                 fmt::format("{} is {}, not a map", pathText(change, depth), inQuotes(node.text)));
    return nullptr;
  }
  if (YamlNode* child = node.find(key)) return child;
  node.children.push_back(makeMap(key, change.place));
  // Index 0 below a missing key makes a list.
  if (depth + 1 < change.path.size() && change.path[depth + 1] == "0")
    node.children.back().kind = YamlNode::Kind::kSequence;
  return &node.children.back();
}

}  // namespace

std::optional<Override> parseOverride(const std::string& text, Report& report) {
  Override change;
  change.place.source = report.addFlag("--set " + text);
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    report.error(change.place, "expected key.path=value");
    return std::nullopt;
  }
  change.path = split(std::string_view(text).substr(0, equals), '.');
  const bool has_empty = std::any_of(change.path.begin(), change.path.end(),
                                     [](const std::string& key) { return key.empty(); });
  if (has_empty || change.path.size() > kPathKeysMax) {
    report.error(change.place,
                 fmt::format("expected from 1 to {} keys with dots between them before the '='",
                             kPathKeysMax));
    return std::nullopt;
  }
  std::optional<YamlNode> value = parseYaml(text.substr(equals + 1), change.place.source, report);
  if (!value) return std::nullopt;
  change.value = std::move(*value);
  moveTo(change.value, change.place);
  DTF_CHECK(!change.path.empty() && report.isFlag(change.place));
  return change;
}

void applyOverride(YamlNode& root, const Override& change, Report& report) {
  DTF_CHECK(!change.path.empty() && report.isFlag(change.place));
  YamlNode* node = &root;
  for (size_t depth = 0; depth < change.path.size(); ++depth) {
    node = step(*node, change, depth, report);
    if (node == nullptr) return;
  }
  std::string key = std::move(node->key);
  *node = change.value;
  node->key = std::move(key);
}

}  // namespace dtf::cluster
