#pragma once

// YAML as a plain tree. Keys and values hold their place in the file. Bytes, depth and nodes are
// bounded, and aliases count with their full size, so that no file can exhaust the process. A merge
// key (<<: *name) gives a map the keys of another that it lacks.
// Explicit tags, several documents and keys that are not words are rejected.

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
  std::string key;      // its key in the surrounding map; empty in a sequence
  Place key_place;      // the key's place; in a sequence and at the root the value's own
  std::vector<YamlNode> children;

  bool isNull() const { return kind == Kind::kNull; }
  bool isScalar() const { return kind == Kind::kScalar; }
  bool isMap() const { return kind == Kind::kMap; }
  bool isSequence() const { return kind == Kind::kSequence; }
  // The place for messages about the value: the value of a scalar, the key of anything longer.
  const Place& where() const { return isScalar() ? place : key_place; }
  // Returns the first child of a map with that key; nullptr if none.
  const YamlNode* find(std::string_view name) const;
  YamlNode* find(std::string_view name);
};

// Parses `text`, the source `source` of `report`. Returns nullopt after reporting why it can't be
// read. Duplicate keys are reported too.
std::optional<YamlNode> parseYaml(const std::string& text, int source, Report& report);

// Reads `path` and parses it as a new source. `named_at` is the place that names the file, for the
// message if it can't be read; null if the user named it, and the message starts with the path.
std::optional<YamlNode> parseYamlFile(const std::filesystem::path& path, const Place* named_at,
                                      Report& report);

}  // namespace dtf::yaml
