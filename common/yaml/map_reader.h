#pragma once

// Reads one map of a YAML tree against its table of keys. Mistakes go into the report, and the
// variables passed to the read functions keep their values, so that reading continues and finds
// every mistake.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/yaml/key_table.h"
#include "common/yaml/report.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::yaml {

// Check one value against one key's bounds. They return nullopt after reporting a mistake.
std::optional<int64_t> readWhole(const YamlNode& node, const Key& key, Report& report);
std::optional<double> readNumber(const YamlNode& node, const Key& key, Report& report);
std::optional<std::string> readText(const YamlNode& node, std::string_view name, Report& report);
// Returns the index of the word in Key::choices.
std::optional<size_t> readChoice(const YamlNode& node, const Key& key, Report& report);

// Reports an unknown key or word, with the nearest one, its right place, or the valid ones. `kind`
// is "key", "layer", "optimizer"; `label` the surrounding map, or empty. `within`: that map; the
// hint follows its choices (of an optimizer). Null if not known.
void reportUnknown(std::string_view kind, std::string_view word, std::string_view label,
                   const Place& place, const Table& table, Report& report,
                   const YamlNode* within = nullptr);

// "expected a map for 'cluster', got 'x'"
void reportType(std::string_view expected, std::string_view name, const YamlNode& node,
                Report& report);

void reportUnavailable(std::string_view word, const Place& place, Report& report,
                       std::string_view instead = {});

// Borrows: the node, the table and the report.
// Threads: thread-compatible.
// Errors: none are thrown; mistakes go into the report.
class MapReader {
 public:
  // Reports unknown, unavailable and missing keys. `label` names the map in messages; empty for a
  // whole file. A node without a value reads as an empty map.
  MapReader(const YamlNode& node, const Table& table, std::string_view label, Report& report);

  // Returns the value of `key`, which must be in the table; nullptr if absent, unusable or null
  // (null is reported).
  const YamlNode* find(std::string_view key) const;

  Report& report() const { return report_; }
  const YamlNode& node() const { return node_; }

  // Each returns whether `value` was set. The table's bounds for the key must fit T.
  template <class T>
  bool whole(std::string_view key, T& value) const {
    const YamlNode* node = find(key);
    const std::optional<int64_t> read =
        node != nullptr ? readWhole(*node, table_.at(key), report_) : std::nullopt;
    if (read) value = static_cast<T>(*read);
    return read.has_value();
  }
  bool number(std::string_view key, double& value) const;
  bool text(std::string_view key, std::string& value) const;
  bool path(std::string_view key, std::string& value) const;  // a text, `~/` expanded
  bool boolean(std::string_view key, bool& value) const;
  // For an enum with values numbered from `first` in the order of the table's choices.
  template <class E>
  bool choice(std::string_view key, E& value, int first = 0) const {
    const YamlNode* node = find(key);
    const std::optional<size_t> index =
        node != nullptr ? readChoice(*node, table_.at(key), report_) : std::nullopt;
    if (index) value = static_cast<E>(*index + first);
    return index.has_value();
  }
  // The word of a choice itself.
  bool word(std::string_view key, std::string& value) const;
  // For a kChoiceOrList: whether it is a word, for choice(), rather than numbers, for wholes().
  bool isWord(std::string_view key) const;
  // For a kWholeOrList: one number for all of `values`, or one for each.
  bool wholes(std::string_view key, std::span<int64_t> values) const;
  // The elements of a list; empty when absent or not a list (reported).
  const std::vector<YamlNode>& list(std::string_view key) const;

 private:
  const YamlNode& node_;
  const Table& table_;
  Report& report_;
};

// A value that names exactly one entry of `table`: `relu`, or {dense: {units: 10}}.
struct Alternative {
  const Key* key = nullptr;
  YamlNode settings;  // its settings; null if only the name is given
};
// `kind` is "layer" or "optimizer". Returns nullopt after reporting a mistake.
std::optional<Alternative> readAlternative(const YamlNode& node, const Table& table,
                                           std::string_view kind, Report& report);

}  // namespace dtf::yaml
