#pragma once

// Whether a data set is what a model reads.

#include <memory>
#include <string>

#include "common/data/dataset.h"
#include "common/model/model_spec.h"

namespace dtf::train {

// `name` is what messages call the images. [28, 28] and [28, 28, 1] are one shape.
// Errors: kBadConfig at model.input.shape for examples of another shape.
void checkExampleShape(const model::ModelSpec& model, const Shape& example_shape,
                       const std::string& name);

// Returns `dataset` when its examples are what the model reads, and its labels classes that the
// model has.
// Errors: as checkExampleShape() and model::outputOf(); kBadData for a label without a unit, as
// data::checkLabels().
std::shared_ptr<const data::Dataset> checkedDataset(const model::ModelSpec& model,
                                                    std::shared_ptr<const data::Dataset> dataset);

}  // namespace dtf::train
