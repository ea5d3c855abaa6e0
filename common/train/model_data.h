#pragma once

// Checks that a data set fits a model.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/data/dataset.h"
#include "common/data/label_check.h"
#include "common/model/model_spec.h"

namespace dtf::train {

// Checks the shape and type of the features; [28, 28] and [28, 28, 1] are one shape. `name`: of the
// features, for messages. `remedy`: for another shape; empty: to set model.input.shape to it.
// Errors: kBadConfig at model.input.shape if shape or type differ.
void checkFeatures(const model::ModelSpec& model, const data::PartSpec& features,
                   const std::string& name, const std::string& remedy = "");

// Checks that the data have the categories that the model reads beside the features. `name`: of the
// data, for messages.
// Errors: kBadConfig.
void checkCategories(const model::ModelSpec& model, std::span<const data::Part> categories,
                     const std::string& name);

// Checks that ids are within the tables in which the model looks them up.
// Errors: kBadData, as data::checkIndices().
void checkIndices(const model::ModelSpec& model, const data::Part& features,
                  std::span<const data::Part> categories);

// Returns the range that the loss needs of targets.
data::TargetRange targetRange(const model::LossSpec& loss);

// Returns `dataset` if its examples fit the model's input, and its labels are classes of the model
// or targets for its units.
// Blocks: on the disk, if the data set is there.
// Errors: as checkFeatures(), checkCategories(), checkIndices() and model::outputOf(); kBadData if
// a label has no unit, as data::checkLabels(); kBadConfig if labels are of another kind than the
// model was built for.
std::shared_ptr<const data::Dataset> checkedDataset(const model::ModelSpec& model,
                                                    std::shared_ptr<const data::Dataset> dataset);

// Returns the classes of the model's units that no example of a checkedDataset() has. Empty for
// targets, and for more than kClassesCheckedMax units: few data have all words or ids.
std::vector<int64_t> classesWithoutExamples(const model::ModelSpec& model,
                                            const data::Dataset& dataset);
inline constexpr int64_t kClassesCheckedMax = 1000;

}  // namespace dtf::train
