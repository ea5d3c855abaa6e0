#include "common/model_files/onnx_preparation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/data/prepared_columns.h"
#include "common/data/table_preparation.h"

namespace dtf::model_files {

namespace {

using cluster::NumericColumn;
using cluster::PreparedColumn;
using Columns = std::span<const PreparedColumn>;
using Names = std::vector<std::string>;

constexpr int64_t kBool = 9, kDouble = 11;  // TensorProto.DataType
constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

bool anyOf(Columns columns, bool NumericColumn::*setting) {
  return std::ranges::any_of(
      columns, [setting](const PreparedColumn& each) { return each.settings.*setting; });
}

bool fills(const PreparedColumn& column) {
  return column.settings.fill != NumericColumn::Fill::kNone;
}

// A constant with a number for each column.
template <class Number>
std::string perColumn(OnnxValues& values, std::string_view name, Columns columns,
                      const Number& number) {
  std::vector<float> numbers;
  for (const PreparedColumn& each : columns) numbers.push_back(static_cast<float>(number(each)));
  const std::array dims = {static_cast<int64_t>(columns.size())};
  return values.constant(fmt::format("preparation/{}", name), dims, numbers);
}

std::string cast(OnnxValues& values, const std::string& x, int64_t type) {
  const OnnxAttribute to{"to", type};
  return values.add("Cast", Names{x}, {&to, 1});
}

// ONNX has no log1p, and the logarithm of the rounded 1 + x alone would lose a small x. This is
// log(s) * x / (s - 1) with s = 1 + x, or x where s is 1: the same factor corrects the rounding.
std::string addLog1p(OnnxValues& values, Columns columns, const std::string& x) {
  const std::string one = cast(values, values.scalar(1), kDouble);
  const std::string sum = values.add("Add", Names{x, one});
  const std::string factor = values.add("Div", Names{x, values.add("Sub", Names{sum, one})});
  const std::string product = values.add("Mul", Names{values.add("Log", Names{sum}), factor});
  const std::string logs =
      values.add("Where", Names{values.add("Equal", Names{sum, one}), x, product});
  if (std::ranges::all_of(columns, [](const PreparedColumn& each) { return each.settings.log1p; }))
    return logs;
  const std::string chosen = perColumn(values, "log1p", columns, [](const PreparedColumn& each) {
    return each.settings.log1p ? 1 : 0;
  });
  return values.add("Where", Names{cast(values, chosen, kBool), logs, x});
}

std::string addStandardize(OnnxValues& values, Columns columns, const std::string& x) {
  const std::string mean =
      perColumn(values, "mean", columns, [](const PreparedColumn& each) { return each.mean; });
  const std::string stddev =
      perColumn(values, "stddev", columns, [](const PreparedColumn& each) { return each.stddev; });
  const std::string difference = values.add("Sub", Names{x, cast(values, mean, kDouble)});
  return values.add("Div", Names{difference, cast(values, stddev, kDouble)});
}

std::string addIndicators(OnnxValues& values, Columns columns, const std::string& missing) {
  std::vector<int64_t> places;
  for (size_t i = 0; i < columns.size(); ++i)
    if (columns[i].settings.missing_indicator) places.push_back(static_cast<int64_t>(i));
  const OnnxAttribute axis{"axis", int64_t{1}};
  return values.add(
      "Gather", Names{cast(values, missing, onnxType(DType::kFloat32)), values.integers(places)},
      {&axis, 1});
}

}  // namespace

std::vector<PreparedColumn> preparedColumnsOf(const std::string& signature, int64_t width) {
  if (signature.empty()) return {};
  const data::DataSignature model = data::decodeSignature(signature, "the checkpoint");
  if (!model.isTable()) return {};
  std::vector<PreparedColumn> columns = data::preparedFeatures(model);
  const bool prepares = std::ranges::any_of(columns, [](const PreparedColumn& each) {
    return fills(each) || each.settings.log1p || each.settings.standardize;
  });
  if (!prepares) return {};
  if (data::preparedWidth(columns) != width)
    throw Error(
        ErrorCode::kBadData,
        fmt::format("the checkpoint's preparation makes {} features, and the model reads {}",
                    data::preparedWidth(columns), width));
  return columns;
}

std::string addPreparation(OnnxValues& values, Columns columns, const std::string& raw) {
  DTF_CHECK(!columns.empty());
  std::string x = raw, missing;
  if (std::ranges::any_of(columns, fills)) {
    missing = values.add("IsNaN", Names{raw});
    const std::string fill = perColumn(values, "fill", columns, [](const PreparedColumn& each) {
      return fills(each) ? each.fill : kMissing;
    });
    x = values.add("Where", Names{missing, fill, raw});
  }
  const bool takes_logs = anyOf(columns, &NumericColumn::log1p);
  const bool standardizes = anyOf(columns, &NumericColumn::standardize);
  // In double and rounded once, as prepareRecord() does.
  if (takes_logs || standardizes) x = cast(values, x, kDouble);
  if (takes_logs) x = addLog1p(values, columns, x);
  if (standardizes) x = addStandardize(values, columns, x);
  if (takes_logs || standardizes) x = cast(values, x, onnxType(DType::kFloat32));
  if (!anyOf(columns, &NumericColumn::missing_indicator)) return x;
  const OnnxAttribute axis{"axis", int64_t{1}};
  return values.add("Concat", Names{x, addIndicators(values, columns, missing)}, {&axis, 1});
}

}  // namespace dtf::model_files
