#pragma once

// Lists of numbers in a model: one for each channel, or for each class.

#include <cstdint>
#include <string>
#include <vector>

#include "common/graph/builder.h"
#include "common/yaml/key_table.h"
#include "common/yaml/map_reader.h"

namespace dtf::model {

// The list at the key number.name, each within the range of `number`; of a key that isn't there
// none. Mistakes, and a list of none or of more than `most`, go into the report.
std::vector<double> readNumbers(const yaml::MapReader& settings, const yaml::Key& number,
                                size_t most);

// For a declaration, whose settings are bounded: of a long list the length and a checksum.
std::string numbersText(const std::vector<double>& numbers);

// float32 [count]. `numbers`: one for each, or one for all.
graph::Output vectorOf(graph::Builder& ops, const std::vector<double>& numbers, int64_t count);

}  // namespace dtf::model
