#include "common/train/data_fit.h"

#include <fmt/format.h>

#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/yaml/error_at.h"

namespace dtf::train {

namespace {

std::string listed(const std::vector<std::string>& columns) {
  constexpr size_t kListedMax = 20;
  std::string text;
  for (size_t i = 0; i < columns.size(); ++i) {
    const bool is_last = i + 1 == columns.size();
    if (i >= kListedMax && !is_last) continue;
    text += (i == 0 ? "" : i > kListedMax ? ", ..., " : ", ") + printable(columns[i]);
  }
  return text;
}

}  // namespace

std::string featureColumns(const data::TrainedColumns& columns, const cluster::CsvSpec& spec) {
  const bool of_words = spec.no_features && !columns.categories.empty();
  return listed(of_words ? columns.categories[0] : columns.features);
}

std::string shapeRemedy(const std::string& columns, const Shape& shape, bool to_train) {
  if (!to_train && columns.empty()) return "evaluate on data of the shape that it trains on";
  if (!to_train)
    return fmt::format(
        "its features are the columns {}: choose the columns of the training data "
        "with feature_columns",
        columns);
  if (columns.empty()) return "";
  return fmt::format(
      "its features are the columns {}: set model.input.shape to {}, or choose the "
      "columns with feature_columns (numbers) and categorical_columns (words, ids)",
      columns, shape.str());
}

void checkClassCount(const model::ModelOutput& output, const std::string& name, int64_t classes) {
  DTF_CHECK(classes > 0 && !name.empty());
  if (output.units >= classes || (output.units == 1 && classes == 2)) return;
  throw yaml::ErrorAt(ErrorCode::kBadConfig, output.layer->mark,
                      fmt::format("{} have {} classes, but layer '{}' has {} unit{}: give it at "
                                  "least {}",
                                  name, classes, output.layer->name, output.units,
                                  output.units == 1 ? "" : "s", classes));
}

}  // namespace dtf::train
