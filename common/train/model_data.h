#pragma once

// Whether a data set is what a model reads.

#include <memory>
#include <span>
#include <string>

#include "common/data/dataset.h"
#include "common/data/label_check.h"
#include "common/model/model_spec.h"

namespace dtf::train {

// `name` is what messages call the features. [28, 28] and [28, 28, 1] are one shape. `remedy`: what
// to do about another shape; empty: set model.input.shape to it.
// Errors: kBadConfig at model.input.shape for examples of another shape or type.
void checkFeatures(const model::ModelSpec& model, const data::PartSpec& features,
                   const std::string& name, const std::string& remedy = "");

// That there are the categories that the model reads beside the features; `name` is what messages
// call the data.
// Errors: kBadConfig.
void checkCategories(const model::ModelSpec& model, std::span<const data::Part> categories,
                     const std::string& name);

// That whole numbers name rows of the tables that the model looks them up in.
// Errors: kBadData, as data::checkIndices().
void checkIndices(const model::ModelSpec& model, const data::Part& features,
                  std::span<const data::Part> categories);

// What the loss wants of targets.
data::TargetRange targetRange(const model::LossSpec& loss);

// Returns `dataset` when its examples are what the model reads, and its labels classes that the
// model has, or targets for its units.
// Blocks: on the disk, where the data set is.
// Errors: as checkFeatures(), checkCategories(), checkIndices() and model::outputOf(); kBadData for
// a label without a unit, as data::checkLabels(); kBadConfig for labels of another kind than the
// model was built for.
std::shared_ptr<const data::Dataset> checkedDataset(const model::ModelSpec& model,
                                                    std::shared_ptr<const data::Dataset> dataset);

}  // namespace dtf::train
