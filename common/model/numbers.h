#pragma once

// Lists of numbers in a model: one for each channel, or for each class.

#include <cstdint>
#include <string>
#include <vector>

#include "common/graph/builder.h"
#include "common/yaml/key_table.h"
#include "common/yaml/map_reader.h"

namespace dtf::model {

// Reads the list at the key number.name; empty if the key is absent. Reports a number outside the
// range of `number`, and a list of none or of more than `most`.
std::vector<double> readNumbers(const yaml::MapReader& settings, const yaml::Key& number,
                                size_t most);

// Returns the numbers for a model's text, which is bounded: length and checksum of a long list.
std::string numbersText(const std::vector<double>& numbers);

// Adds a float32 [count]. `numbers`: one for each place, or one for all.
graph::Output vectorOf(graph::Builder& ops, const std::vector<double>& numbers, int64_t count);

}  // namespace dtf::model
