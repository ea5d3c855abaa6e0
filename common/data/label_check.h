#pragma once

// Whether labels, and features that name rows of a table, are such that a model can learn from
// them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/data/part.h"

namespace dtf::data {

// What float targets may be.
enum class TargetRange : uint8_t {
  kAny,
  kProbability,  // from 0 to 1
  kZeroOrOne
};

// Classes: `units` are those of the layer whose output they are compared with; one unit tells class
// 0 from class 1. Targets: each example has one for each unit.
// Errors: kBadData naming the labels' source, the first example that doesn't fit, and the layer.
void checkLabels(const Part& labels, int64_t units, std::string_view layer,
                 TargetRange range = TargetRange::kAny);

// That each example has a target for each unit, from what is known without reading them. `source`
// is what messages call them.
// Errors: kBadData.
void checkTargetCount(const PartSpec& targets, const std::string& source, int64_t units,
                      std::string_view layer);

// That each number of the examples names one of the `vocabulary` rows of the table of `layer`;
// floats do without what is behind their point.
// Errors: kBadData naming the features' source, the first example that has another one, and the
// layer.
void checkIndices(const Part& features, int64_t vocabulary, std::string_view layer);

// That each class that has a name has an example: a word that is misspelt in a list of classes
// would drop a class otherwise. `names`: from class 0 on; more labels than names are not its
// affair. Errors: kBadData with the first classes that have none.
void checkAllClasses(const Part& labels, const std::vector<std::string>& names);

// The names of classes without an example.
std::vector<std::string> classesWithoutExamples(const Part& labels,
                                                const std::vector<std::string>& names);

// Whole numbers of any type.
std::vector<int64_t> classLabels(const Part& labels);

// 1 + the largest class; 0 for none. The labels are classes (DTF_CHECK).
// Errors: kBadData for one below 0.
int64_t classesOf(const Part& labels);

}  // namespace dtf::data
