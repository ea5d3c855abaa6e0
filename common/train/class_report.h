#pragma once

// The report on an evaluation by class, for people and programs: precision, recall, F1 and support
// of each class, their averages, and the confusion matrix.

#include <span>
#include <string>

#include "common/base/json.h"
#include "common/train/confusion_matrix.h"

namespace dtf::train {

// Returns the report as lines, each indented by two spaces. `names`: of the classes from 0 on; a
// class beyond has its number. At most 50 classes are listed, with the lowest F1 first if there are
// more. Up to 20 classes have a matrix, more have the 20 most confused pairs.
std::string classReportText(const ConfusionMatrix& matrix, std::span<const std::string> names);

// Returns accuracy, examples, unpredicted, macro, weighted, classes (class, name, precision,
// recall, f1, support, predicted), confusion (classes, matrix; null for more than 100 classes) and
// most_confused (class, predicted, examples). `name` is null for a class without one.
Json classReportJson(const ConfusionMatrix& matrix, std::span<const std::string> names);

}  // namespace dtf::train
