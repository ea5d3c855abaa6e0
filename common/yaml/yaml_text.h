#pragma once

#include <string>

#include "common/yaml/yaml_tree.h"

namespace dtf::yaml {

// Returns the tree as the text of a YAML file, which parseYaml() reads as the same tree: a key a
// line; what is short and has no maps or lists inside is in brackets.
std::string yamlText(const YamlNode& root);

}  // namespace dtf::yaml
