#pragma once

// What a layer's variables begin with, as the file gives it: a word, or {constant: 0.1}.

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

// Sets `initializer` to what the graph calls it ("constant=0.1") where the key is given. Mistakes
// go into the reader's report.
void readInitializer(const yaml::MapReader& settings, std::string_view key,
                     std::string& initializer);

}  // namespace dtf::model
