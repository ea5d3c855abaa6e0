#include "common/train/model_data.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/model/model_graph.h"
#include "common/yaml/error_at.h"

namespace dtf::train {

namespace {

// Returns [28, 28] for [28, 28, 1], which has the same bytes.
Shape withoutSingleChannel(const Shape& shape) {
  if (shape.rank() != 3 || shape.dim(2) != 1) return shape;
  return Shape{shape.dim(0), shape.dim(1)};
}

// Returns whether the layers accept examples of `shape`.
bool accepts(model::ModelSpec model, const Shape& shape) {
  model.input_shape = shape.dims();
  try {
    model::outputOf(model);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Returns the shape for model.input.shape: that of the examples, or if the layers accept it only
// with the channels of images, [16, 16, 1] for [16, 16].
Shape shapeToSet(const model::ModelSpec& model, const Shape& examples) {
  if (examples.rank() != 2) return examples;
  const Shape image{examples.dim(0), examples.dim(1), 1};
  return !accepts(model, examples) && accepts(model, image) ? image : examples;
}

}  // namespace

void checkFeatures(const model::ModelSpec& model, const data::PartSpec& features,
                   const std::string& name, const std::string& remedy) {
  const Shape wanted(model.input_shape);
  const Shape& example_shape = features.shape;
  if (features.dtype != model.input_dtype)
    throw yaml::ErrorAt(
        ErrorCode::kBadConfig, model.shape_mark,
        fmt::format("the model reads {} examples, but got {} from {}: evaluate on data of the "
                    "format that it trains on",
                    dtypeName(model.input_dtype), dtypeName(features.dtype), name));
  if (withoutSingleChannel(wanted) == withoutSingleChannel(example_shape)) return;
  const std::string set_shape = fmt::format("set model.input.shape to {}, or use other {}",
                                            shapeToSet(model, example_shape).str(),
                                            features.dtype == DType::kUInt8 ? "images" : "data");
  throw yaml::ErrorAt(
      ErrorCode::kBadConfig, model.shape_mark,
      fmt::format("the model reads examples of shape {}, but got {} from {}: {}", wanted.str(),
                  example_shape.str(), name, remedy.empty() ? set_shape : remedy));
}

void checkCategories(const model::ModelSpec& model, std::span<const data::Part> categories,
                     const std::string& name) {
  // If the first categories are the features, checkFeatures() has checked them.
  std::span<const model::CategoryInput> wanted = model.categories;
  if (model.features_are_categories) wanted = wanted.subspan(1);
  const bool same = std::equal(wanted.begin(), wanted.end(), categories.begin(), categories.end(),
                               [](const model::CategoryInput& one, const data::Part& other) {
                                 return one.name == other.spec().name &&
                                        one.count == other.spec().shape.elements();
                               });
  if (same) return;
  std::string first = "others";
  for (size_t i = wanted.size(); i-- > 0;)
    if (i >= categories.size() || categories[i].spec().name != wanted[i].name)
      first = "no '" + wanted[i].name + "'";
  throw yaml::ErrorAt(ErrorCode::kBadConfig, model.mark,
                      fmt::format("the model reads categories beside the features, and {} has {}: "
                                  "use data with all that it trains on, a table or an archive",
                                  name, first));
}

void checkIndices(const model::ModelSpec& model, const data::Part& features,
                  std::span<const data::Part> categories) {
  for (const model::Vocabulary& vocabulary : model::vocabulariesOf(model)) {
    DTF_CHECK(vocabulary.input != 1);  // the labels
    const data::Part& part = vocabulary.input == 0 ? features : categories[vocabulary.input - 2];
    data::checkIndices(part, vocabulary.size, vocabulary.layer);
  }
}

data::TargetRange targetRange(const model::LossSpec& loss) {
  switch (loss.kind) {
    case model::Loss::kSoftmaxCrossEntropy:
    case model::Loss::kSigmoidCrossEntropy:
      return data::TargetRange::kProbability;
    case model::Loss::kHinge:
      return data::TargetRange::kZeroOrOne;
    case model::Loss::kMse:
    case model::Loss::kMae:
    case model::Loss::kHuber:
    case model::Loss::kTensor:
      return data::TargetRange::kAny;
  }
  DTF_CHECK_MSG(false, std::to_string(static_cast<int>(loss.kind)));
}

std::shared_ptr<const data::Dataset> checkedDataset(const model::ModelSpec& model,
                                                    std::shared_ptr<const data::Dataset> dataset) {
  DTF_CHECK(dataset != nullptr);
  checkFeatures(model, dataset->features().spec(), dataset->features().source());
  const data::Part& labels = dataset->labels();
  if (data::areClasses(labels.spec()) == model.hasTargets())
    throw yaml::ErrorAt(ErrorCode::kBadConfig, model.mark,
                        fmt::format("the model learns {} labels, but got {} from {}: evaluate on "
                                    "data of the format that it trains on",
                                    dtypeName(model.labels_dtype), dtypeName(labels.spec().dtype),
                                    labels.source()));
  const model::ModelOutput output = model::outputOf(model);
  data::checkLabels(labels, output.units, output.layer->name, targetRange(model.loss));
  checkCategories(model, dataset->categories(), dataset->features().source());
  checkIndices(model, dataset->features(), dataset->categories());
  return dataset;
}

std::vector<int64_t> classesWithoutExamples(const model::ModelSpec& model,
                                            const data::Dataset& dataset) {
  if (!data::areClasses(dataset.labels().spec())) return {};
  const int64_t units = model::outputOf(model).units;
  if (units > kClassesCheckedMax) return {};
  return data::classesWithoutExamples(dataset.labels(), units == 1 ? 2 : units);
}

}  // namespace dtf::train
