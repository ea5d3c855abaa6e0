#pragma once

// `--set key.path=value`: a change to the YAML tree before it is validated, so that a bad one is
// reported exactly like a bad line of a file, under its own name.

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

// Splits at the first '=' and at the dots before it; the value is parsed as YAML. nullopt:
// reported.
std::optional<Override> parseOverride(const std::string& text, yaml::Report& report);

// Puts the value at its path below `root`, making the maps on the way that don't exist. An index
// may be at most the size of the list, which appends. Mistakes are reported and change nothing.
void applyOverride(yaml::YamlNode& root, const Override& change, yaml::Report& report);

}  // namespace dtf::cluster
