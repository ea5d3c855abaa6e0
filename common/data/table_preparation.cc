#include "common/data/table_preparation.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/data/part.h"
#include "common/data/prepared_columns.h"
#include "common/yaml/error_at.h"

namespace dtf::data {

namespace {

using cluster::CsvSpec;
using cluster::NumericColumn;
using cluster::PreparedColumn;
using Fill = NumericColumn::Fill;
using Names = std::vector<std::string>;

constexpr const char* kFill = "fill";
constexpr const char* kIndicator = "missing_indicator";
constexpr const char* kLog1p = "log1p";
constexpr const char* kStandardize = "standardize";

const char* fillName(Fill fill) {
  return fill == Fill::kMean ? "mean" : fill == Fill::kMedian ? "median" : "value";
}

// Adds a step for the columns that `has` chooses, if any. `add` gives it its members.
template <class Has, class Add>
void addStep(std::vector<Json>& steps, const char* op, const std::vector<PreparedColumn>& columns,
             const Has& has, const Add& add) {
  Json names = Json::array();
  std::vector<const PreparedColumn*> chosen;
  for (const PreparedColumn& each : columns) {
    if (!has(each.settings)) continue;
    names.push_back(asUtf8(each.settings.column));
    chosen.push_back(&each);
  }
  if (chosen.empty()) return;
  Json step = {{"op", op}, {"columns", std::move(names)}};
  add(step, chosen);
  steps.push_back(std::move(step));
}

Json numbersOf(const std::vector<const PreparedColumn*>& columns, double PreparedColumn::*member) {
  Json numbers = Json::array();
  for (const PreparedColumn* each : columns) numbers.push_back(each->*member);
  return numbers;
}

// A list with a number for each column, in order of the step's columns.
double numberAt(const Json& step, const char* key, size_t index) {
  const Json& numbers = step.arrayAt(key);
  const double number = index < numbers.size() ? numbers[index].asDouble() : NAN;
  if (numbers.size() != step.arrayAt("columns").size() || !std::isfinite(number))
    throw Error(ErrorCode::kBadData, std::string("the list '") + key + "' of a preparation");
  return number;
}

void readStep(const Json& step, size_t index, PreparedColumn& column) {
  const std::string& op = step.stringAt("op");
  NumericColumn& settings = column.settings;
  if (op == kIndicator) settings.missing_indicator = true;
  if (op == kLog1p) settings.log1p = true;
  if (op == kFill) {
    const std::string& how = step.arrayAt("with").at(index).asString();
    column.fill = numberAt(step, "values", index);
    settings.fill = how == "mean" ? Fill::kMean : how == "median" ? Fill::kMedian : Fill::kValue;
    if (settings.fill == Fill::kValue) settings.fill_value = column.fill;
  }
  if (op == kStandardize) {
    settings.standardize = true;
    column.mean = numberAt(step, "mean", index);
    column.stddev = numberAt(step, "stddev", index);
    if (column.stddev <= 0) throw Error(ErrorCode::kBadData, "a standard deviation is not above 0");
  }
}

bool haveSameSettings(const PreparedColumn& a, const PreparedColumn& b) {
  const NumericColumn &x = a.settings, &y = b.settings;
  return x.fill == y.fill && x.missing_indicator == y.missing_indicator && x.log1p == y.log1p &&
         x.standardize == y.standardize && (x.fill != Fill::kValue || a.fill == b.fill);
}

const PartSignature* partNamed(const std::vector<PartSignature>& parts, std::string_view name) {
  const auto found = std::ranges::find(parts, name, &PartSignature::name);
  return found == parts.end() ? nullptr : &*found;
}

// Returns the words of a vocabulary that was learned with the same settings; nullopt: the part has
// none.
std::optional<Names> learnedWords(const PartSignature* part, const Json& settings) {
  if (part == nullptr || part->preparation.size() != 1) return std::nullopt;
  Json step = part->preparation[0];
  const Json* const words = step.find("words");
  if (words == nullptr) return std::nullopt;
  Names all = words->asStrings();
  step["words"] = Json::array();
  if (step != settings) return std::nullopt;
  return all;
}

}  // namespace

std::vector<Json> featureSteps(const CsvSpec& csv) {
  std::vector<PreparedColumn> columns;
  if (csv.learned) columns = csv.learned->features;
  if (!csv.learned)
    for (const NumericColumn& each : csv.numeric) columns.push_back({each});
  const bool has_numbers = csv.learned.has_value();
  std::vector<Json> steps;
  addStep(
      steps, kFill, columns, [](const NumericColumn& each) { return each.fill != Fill::kNone; },
      [&](Json& step, const std::vector<const PreparedColumn*>& chosen) {
        Json with = Json::array();
        for (const PreparedColumn* each : chosen) with.push_back(fillName(each->settings.fill));
        step["with"] = std::move(with);
        if (has_numbers) step["values"] = numbersOf(chosen, &PreparedColumn::fill);
      });
  addStep(
      steps, kIndicator, columns, [](const NumericColumn& each) { return each.missing_indicator; },
      [](Json&, const auto&) {});
  addStep(
      steps, kLog1p, columns, [](const NumericColumn& each) { return each.log1p; },
      [](Json&, const auto&) {});
  addStep(
      steps, kStandardize, columns, [](const NumericColumn& each) { return each.standardize; },
      [&](Json& step, const std::vector<const PreparedColumn*>& chosen) {
        if (!has_numbers) return;
        step["mean"] = numbersOf(chosen, &PreparedColumn::mean);
        step["stddev"] = numbersOf(chosen, &PreparedColumn::stddev);
      });
  return steps;
}

namespace {

// Returns the step by which each word becomes a number.
std::vector<Json> wordSteps(const CsvSpec& csv, size_t index) {
  const cluster::CategoricalColumns& columns = csv.categorical.at(index);
  if (columns.hash_bucket_size > 0)
    return {{{"op", "hash"}, {"buckets", columns.hash_bucket_size}}};
  if (!columns.buckets.empty())
    return {{{"op", "bucketize"},
             {"boundaries", columns.buckets},
             {"num_oov_buckets", columns.num_oov_buckets}}};
  if (columns.learned_max_size > 0)
    return {{{"op", "vocabulary"},
             {"words", csv.learned ? Json(asUtf8(csv.learned->words.at(index))) : Json::array()},
             {"num_oov_buckets", columns.num_oov_buckets},
             {"from", "data"},
             {"max_size", columns.learned_max_size},
             {"min_count", columns.learned_min_count}}};
  if (columns.vocabulary_list.empty()) return {};
  return {{{"op", "vocabulary"},
           {"words", asUtf8(columns.vocabulary_list)},
           {"num_oov_buckets", columns.num_oov_buckets}}};
}

}  // namespace

std::vector<Json> categorySteps(const CsvSpec& csv, size_t index) {
  std::vector<Json> steps = wordSteps(csv, index);
  const cluster::CategoricalColumns& columns = csv.categorical.at(index);
  if (columns.split == 0) return steps;
  DTF_CHECK(steps.size() == 1);
  steps[0]["split"] = std::string(1, columns.split);
  steps[0]["max_words"] = columns.max_words;
  return steps;
}

std::vector<Json> labelSteps(const CsvSpec& csv) {
  if (csv.learns_classes)
    return {{{"op", "vocabulary"},
             {"words", csv.learned ? Json(asUtf8(csv.learned->class_names)) : Json::array()},
             {"from", "data"}}};
  if (csv.class_names.empty()) return {};
  return {{{"op", "vocabulary"}, {"words", asUtf8(csv.class_names)}}};
}

std::vector<PreparedColumn> preparedFeatures(const DataSignature& model) {
  const PartSignature* const part = partNamed(model.inputs, kFeatures);
  std::vector<PreparedColumn> columns;
  if (part == nullptr) return columns;
  std::unordered_map<std::string_view, size_t> places;
  for (const std::string& name : part->columns) {
    places.emplace(name, columns.size());
    columns.emplace_back().settings.column = name;
  }
  for (const Json& step : part->preparation) {
    const Names names = step.arrayAt("columns").asStrings();
    for (size_t i = 0; i < names.size(); ++i) {
      const auto column = places.find(names[i]);
      if (column == places.end())
        throw Error(ErrorCode::kBadData, "the model's preparation is for a column '" +
                                             printable(names[i]) + "', which the model lacks");
      readStep(step, i, columns[column->second]);
    }
  }
  return columns;
}

cluster::DatasetSpec withLearnedOf(const DataSignature& model, const cluster::DatasetSpec& spec) {
  const CsvSpec& csv = spec.csv;
  if (spec.format != cluster::DatasetSpec::Format::kCsv || !model.isTable() ||
      (csv.numeric.empty() && !csv.learns()))
    return spec;
  cluster::LearnedTable learned;
  if (!csv.numeric.empty()) {
    const PartSignature* const features = partNamed(model.inputs, kFeatures);
    if (features == nullptr) return spec;
    learned.features = preparedFeatures(model);
    std::vector<PreparedColumn> wanted;
    try {
      wanted = preparedColumns(features->columns, csv.numeric);
    } catch (const yaml::ErrorAt&) {
      return spec;  // the model has other columns
    }
    if (!std::ranges::equal(learned.features, wanted, haveSameSettings)) return spec;
  }
  CsvSpec unlearned = csv;
  unlearned.learned.reset();
  for (size_t i = 0; i < csv.categorical.size(); ++i) {
    learned.words.emplace_back();
    if (csv.categorical[i].learned_max_size == 0) continue;
    const auto words = learnedWords(partNamed(model.inputs, csv.categorical[i].name),
                                    categorySteps(unlearned, i).at(0));
    if (!words) return spec;
    learned.words.back() = *words;
  }
  if (csv.learns_classes) {
    const auto words = learnedWords(partNamed(model.targets, kLabels), labelSteps(unlearned).at(0));
    if (!words) return spec;
    learned.class_names = *words;
  }
  cluster::DatasetSpec found = spec;
  found.csv.learned = std::move(learned);
  return found;
}

}  // namespace dtf::data
