#pragma once

// Initial values of a layer's variables in the file: a word, or {constant: 0.1}.

#include <string>
#include <string_view>

#include "common/yaml/key_table.h"
#include "common/yaml/keys.h"
#include "common/yaml/map_reader.h"

namespace dtf::model {

extern const yaml::Table kInitializerTable;

constexpr yaml::Key initializerKey(std::string_view name, std::string_view help) {
  return yaml::textOrMap(name, help);
}

// Sets `initializer` to the graph's name for it ("constant=0.1") if the key is present. Mistakes go
// into the reader's report.
void readInitializer(const yaml::MapReader& settings, std::string_view key,
                     std::string& initializer);

}  // namespace dtf::model
