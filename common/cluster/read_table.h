#pragma once

// Reads the keys of `data.train` and `data.eval` that describe a table in text, and keys that
// other formats share with it.

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/cluster/data_spec.h"
#include "common/yaml/map_reader.h"

namespace dtf::cluster {

inline constexpr size_t kCategoricalMax = 256;  // inputs of a model

// The classes as the job's file gives them.
struct ClassNames {
  std::vector<std::string> names;  // in order; empty: none are listed
  bool are_learned = false;        // `class_names: {from: data}`
};

// Reads `class_names`: a list, or for a table a map. Mistakes go into the report.
ClassNames readClassNames(const yaml::MapReader& reader, yaml::Report& report);

// Checks that the key of `node` can name an input of the model.
void checkInputName(const yaml::YamlNode& node, yaml::Report& report);

// Returns `read` of each entry of the map `key`, in order of name.
template <class Read>
auto readCategories(const yaml::MapReader& reader, std::string_view key, yaml::Report& report,
                    const Read& read) {
  std::vector<decltype(read(yaml::YamlNode()))> all;
  const yaml::YamlNode* const map = reader.find(key);
  if (map == nullptr || !map->isMap()) return all;
  for (const yaml::YamlNode& node : map->children) all.push_back(read(node));
  if (all.empty() || all.size() > kCategoricalMax)
    report.error(map->key_place, yaml::inQuotes(key) + " has from 1 to " +
                                     std::to_string(kCategoricalMax) + " names, got " +
                                     std::to_string(all.size()));
  std::ranges::sort(all, {}, [](const auto& each) { return each.name; });
  return all;
}

// Reads the keys of format csv, except `files`. Mistakes go into the report.
void readCsv(const yaml::MapReader& reader, CsvSpec& csv, yaml::Report& report);

}  // namespace dtf::cluster
