#pragma once

// `--set key.path=value` changes the YAML tree before it is validated. So a bad override is
// reported like a bad line of a file, with the flag as its place.

#include <optional>
#include <string>
#include <vector>

#include "common/yaml/report.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::cluster {

struct Override {
  std::vector<std::string> path;  // keys, and indices of list elements: {"cluster", "ps", "0"}
  yaml::YamlNode value;
  yaml::Place place;  // a source of its own: "--set cluster.ps.0=host:1"
};

// Splits at the first '=' and at the dots before it, and parses the value as YAML. nullopt: a
// mistake, which is reported.
std::optional<Override> parseOverride(const std::string& text, yaml::Report& report);

// Sets the value at its path below `root` and makes missing maps on the way. An index equal to the
// list's size appends. Reports a mistake; then the value is not set.
void applyOverride(yaml::YamlNode& root, const Override& change, yaml::Report& report);

}  // namespace dtf::cluster
