#pragma once

// YAML as a plain tree in which every key and value knows where it was written. It is bounded in
// bytes, depth and nodes (aliases count as what they stand for), so that no file can exhaust the
// process. Explicit tags, several documents and keys that are not words are refused.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/yaml/report.h"

namespace dtf::yaml {

inline constexpr uint64_t kYamlBytesMax = uint64_t{1} << 20;
inline constexpr int kYamlDepthMax = 32;
inline constexpr size_t kYamlNodesMax = 100'000;
inline constexpr size_t kYamlAliasBytesMax = size_t{4} << 20;

// Value type; a copy is deep.
struct YamlNode {
  enum class Kind : uint8_t { kNull, kScalar, kSequence, kMap } kind = Kind::kNull;
  bool quoted = false;  // a scalar between quotes: never a number
  std::string text;     // of a scalar
  Place place;          // of the value
  std::string key;      // in the map that holds it; empty in a sequence
  Place key_place;      // of the key; the value's own place in a sequence and at the root
  std::vector<YamlNode> children;

  bool isNull() const { return kind == Kind::kNull; }
  bool isScalar() const { return kind == Kind::kScalar; }
  bool isMap() const { return kind == Kind::kMap; }
  bool isSequence() const { return kind == Kind::kSequence; }
  // Where a message about the value points: the value of a scalar, the key of anything longer.
  const Place& where() const { return isScalar() ? place : key_place; }
  // The first child of a map with that key; nullptr: none.
  const YamlNode* find(std::string_view name) const;
  YamlNode* find(std::string_view name);
};

// Parses `text`, which is the source `source` of `report`. nullopt: it can't be read, and the
// report says why. Duplicate keys are reported too.
std::optional<YamlNode> parseYaml(const std::string& text, int source, Report& report);

// Reads `path` and parses it as a new source. `named_at` is where a file named it, for the message
// when it can't be read; null: the user did, and the message starts with the path.
std::optional<YamlNode> parseYamlFile(const std::filesystem::path& path, const Place* named_at,
                                      Report& report);

}  // namespace dtf::yaml
