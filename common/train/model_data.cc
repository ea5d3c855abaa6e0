#include "common/train/model_data.h"

#include <fmt/core.h>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/model/model_graph.h"
#include "common/yaml/error_at.h"

namespace dtf::train {

namespace {

// [28, 28] for [28, 28, 1]: the same bytes.
Shape withoutSingleChannel(const Shape& shape) {
  if (shape.rank() != 3 || shape.dim(2) != 1) return shape;
  return Shape{shape.dim(0), shape.dim(1)};
}

}  // namespace

void checkExampleShape(const model::ModelSpec& model, const Shape& example_shape,
                       const std::string& name) {
  const Shape wanted(model.input_shape);
  if (withoutSingleChannel(wanted) == withoutSingleChannel(example_shape)) return;
  throw yaml::ErrorAt(ErrorCode::kBadConfig, model.shape_mark,
                      fmt::format("the model reads examples of shape {}, those of {} have {}: set "
                                  "model.input.shape to it, or use other images",
                                  wanted.str(), name, example_shape.str()));
}

std::shared_ptr<const data::Dataset> checkedDataset(const model::ModelSpec& model,
                                                    std::shared_ptr<const data::Dataset> dataset) {
  DTF_CHECK(dataset != nullptr);
  checkExampleShape(model, dataset->exampleShape(), dataset->names().images);
  const model::ModelOutput output = model::outputOf(model);
  data::checkLabels(dataset->labels(), dataset->names().labels, output.units, output.layer->name);
  return dataset;
}

}  // namespace dtf::train
