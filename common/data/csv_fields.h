#pragma once

// Converts fields of a table to the numbers that a model reads: features, targets and classes.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dtf::data {

// Returns 1 for true and yes, 0 for false and no, in any case of the letters; nullopt for any other
// text.
std::optional<int32_t> booleanOf(std::string_view field);

// Returns the number in a field, whose decimals follow `decimal`; nullopt if it is none.
std::optional<double> decimalOf(std::string_view field, char decimal);

// Returns a field as float32: a number whose decimals follow `decimal`, or a booleanOf(). Spaces
// around it are ignored. nullopt for any other text, and for a number that float32 can't hold.
std::optional<float> floatOf(std::string_view field, char decimal = '.');

// Returns a field as a row number of an embedding. "3.0" is a whole number, too: tables have it
// where a column has gaps.
std::optional<int32_t> indexOf(std::string_view field, char decimal = '.');

// Returns the name of a class that is learned from a table: the field without the spaces around it.
// Whole numbers are written alike: "1.0" and "+1" are "1". A code is none of them: "007" and "1e3"
// stay as they are.
std::string className(std::string_view field, char decimal = '.');

}  // namespace dtf::data
