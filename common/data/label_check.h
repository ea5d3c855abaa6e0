#pragma once

// Checks that labels, and features that are looked up in a table, fit a model.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/data/part.h"

namespace dtf::data {

// The values that float targets may have.
enum class TargetRange : uint8_t {
  kAny,
  kProbability,  // from 0 to 1
  kZeroOrOne
};

// Checks labels against the `units` of `layer`. Classes: each is below `units`; one unit tells
// class 0 from class 1. Targets: each example has one for each unit.
// Errors: kBadData naming the labels' source, the first example that doesn't fit, and the layer.
void checkLabels(const Part& labels, int64_t units, std::string_view layer,
                 TargetRange range = TargetRange::kAny);

// Checks that each example has a target for each unit, without reading the targets. `source` is for
// messages.
// Errors: kBadData.
void checkTargetCount(const PartSpec& targets, const std::string& source, int64_t units,
                      std::string_view layer);

// Checks that each number of the examples is below `vocabulary`, the rows in the table of `layer`;
// floats lose their fraction.
// Errors: kBadData naming the features' source, the first example with another number, and the
// layer.
void checkIndices(const Part& features, int64_t vocabulary, std::string_view layer);

// Checks that each named class has an example: a misspelt name in a list of classes would drop a
// class otherwise. `names`: from class 0 on; labels beyond them aren't checked.
// Errors: kBadData with the first classes without an example.
void checkAllClasses(const Part& labels, const std::vector<std::string>& names);

// Returns the classes from 0 to `classes` - 1 without an example.
std::vector<int64_t> classesWithoutExamples(const Part& labels, int64_t classes);

// Returns the names of classes without an example.
std::vector<std::string> classesWithoutExamples(const Part& labels,
                                                const std::vector<std::string>& names);

// Returns the labels, whole numbers of any type.
std::vector<int64_t> classLabels(const Part& labels);

// Returns 1 + the largest class; 0 for none. The labels are classes (DTF_CHECK).
// Errors: kBadData for one below 0.
int64_t classesOf(const Part& labels);

}  // namespace dtf::data
