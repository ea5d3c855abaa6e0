#include "common/data/csv_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/data/csv_numbers.h"
#include "common/data/data_signature.h"
#include "common/yaml/key_table.h"

namespace dtf::data {

namespace {

[[noreturn]] void failColumns(const std::string& file, const std::string& why) {
  throw Error(ErrorCode::kBadConfig, printable(file + ": " + why));
}

// Returns the names with at most 40 bytes each, for a message: a file that is no table may have a
// header of any length.
std::vector<std::string> shortened(std::vector<std::string> names) {
  constexpr size_t kShownMax = 40;
  for (std::string& name : names)
    if (name.size() > kShownMax) name = name.substr(0, kShownMax) + "...";
  return names;
}

// Finds columns by their names or numbers.
// Borrows: the names.
class ColumnIndex {
 public:
  explicit ColumnIndex(const std::vector<std::string>& names) : names_(names) {
    for (size_t i = 0; i < names.size(); ++i) places_[names[i]].push_back(i);
  }

  // Sets `place`, or returns why there is no such column.
  std::string find(const std::string& wanted, size_t& place) const {
    if (const auto named = places_.find(wanted); named != places_.end()) {
      place = named->second.front();
      return named->second.size() == 1
                 ? ""
                 : fmt::format("{} columns are named '{}': give each a name of its own",
                               named->second.size(), wanted);
    }
    const std::optional<uint64_t> number = numberOf<uint64_t>(wanted);
    if (number && *number >= 1 && *number <= names_.size()) {
      place = *number - 1;
      return "";
    }
    return fmt::format("there is no column '{}' among {}{}", wanted, names_.size(),
                       nearText(wanted));
  }

 private:
  // " - did you mean 'rome'?"; of few columns also " (one of rome, paris)".
  std::string nearText(const std::string& wanted) const {
    const std::vector<std::string_view> names(names_.begin(), names_.end());
    constexpr size_t kListedMax = 20;
    if (names.size() <= kListedMax) return yaml::suggestion(wanted, names);
    const std::string near = yaml::nearestKey(wanted, names);
    return near.empty() ? "" : fmt::format(" - did you mean '{}'?", near);
  }

  const std::vector<std::string>& names_;
  std::unordered_map<std::string_view, std::vector<size_t>> places_;
};

// Takes columns, each once.
class Chooser {
 public:
  Chooser(const std::string& file, const CsvColumns& columns)
      : file_(file), index_(columns.names), taken_(columns.names.size()) {}

  size_t take(const std::string& wanted) {
    size_t column = 0;
    if (const std::string why = index_.find(wanted, column); !why.empty()) failColumns(file_, why);
    if (taken_[column]) failColumns(file_, fmt::format("column '{}' is listed twice", wanted));
    taken_[column] = true;
    return column;
  }
  std::vector<size_t> take(const std::vector<std::string>& wanted) {
    std::vector<size_t> taken;
    for (const std::string& each : wanted) taken.push_back(take(each));
    return taken;
  }
  // Finds a column that may have another use; by default it is no feature.
  size_t find(const std::string& wanted, bool takes) {
    size_t column = 0;
    if (const std::string why = index_.find(wanted, column); !why.empty()) failColumns(file_, why);
    if (takes) taken_[column] = true;
    return column;
  }
  std::vector<size_t> rest() const {
    std::vector<size_t> rest;
    for (size_t i = 0; i < taken_.size(); ++i)
      if (!taken_[i]) rest.push_back(i);
    return rest;
  }

 private:
  const std::string& file_;
  const ColumnIndex index_;
  std::vector<bool> taken_;
};

void checkFeatures(const std::string& file, const CsvColumns& columns,
                   const cluster::CsvSpec& spec) {
  if (spec.no_features || !columns.features.empty()) return;
  failColumns(file, spec.categorical.empty()
                        ? "no column is left for the features"
                        : "no column is left for the features: where categorical columns are all "
                          "there is, say 'feature_columns: []'");
}

// A model finds its columns by their names.
void checkNamesDiffer(const std::string& file, const CsvColumns& columns) {
  std::vector<std::string> chosen;
  const auto add = [&](const std::vector<size_t>& all) {
    for (const size_t column : all) chosen.push_back(asUtf8(columns.names[column]));
  };
  add(columns.features);
  add(columns.targets);
  for (const std::vector<size_t>& each : columns.categories) add(each);
  if (columns.label) chosen.push_back(asUtf8(columns.names[*columns.label]));
  std::sort(chosen.begin(), chosen.end());
  const auto twice = std::adjacent_find(chosen.begin(), chosen.end());
  if (twice != chosen.end())
    failColumns(file, fmt::format("two columns are named '{}', and a model finds its columns by "
                                  "their names: give one of them another name",
                                  printable(*twice)));
}

bool areConsecutive(const std::vector<std::string>& names, const std::vector<size_t>& columns) {
  std::optional<int64_t> before;
  for (const size_t column : columns) {
    const std::optional<int64_t> number = numberOf<int64_t>(names[column]);
    if (!number || (before && *number != *before + 1)) return false;
    before = number;
  }
  return true;
}

}  // namespace

std::vector<yaml::ErrorAt> missingColumns(const std::string& file,
                                          const std::vector<std::string>& names,
                                          const cluster::CsvSpec& spec) {
  const ColumnIndex index(names);
  std::vector<yaml::ErrorAt> missing;
  const auto look = [&](const std::string& wanted) {
    size_t place = 0;
    const std::string why = index.find(wanted, place);
    const auto mark = spec.column_marks.find(wanted);
    if (!why.empty())
      missing.emplace_back(ErrorCode::kBadConfig,
                           mark == spec.column_marks.end() ? yaml::Mark() : mark->second,
                           printable(file + ": " + why));
  };
  if (!spec.label.empty()) look(spec.label);
  for (const std::string& target : spec.targets) look(target);
  for (const cluster::CategoricalColumns& each : spec.categorical)
    for (const std::string& column : each.columns) look(column);
  for (const std::string& feature : spec.features) look(feature);
  if (!spec.split_column.empty()) look(spec.split_column);
  return missing;
}

CsvColumns chooseColumns(const std::string& file, std::vector<std::string> names,
                         const cluster::CsvSpec& spec) {
  if (const auto missing = missingColumns(file, names, spec); !missing.empty()) {
    if (missing[0].mark().file.empty()) throw Error(missing[0].code(), missing[0].reason());
    throw yaml::ErrorAt(missing[0]);
  }
  CsvColumns columns;
  columns.names = std::move(names);
  Chooser chooser(file, columns);
  if (!spec.label.empty()) columns.label = chooser.take(spec.label);
  columns.targets = chooser.take(spec.targets);
  DTF_CHECK(columns.label.has_value() == columns.targets.empty());
  for (const cluster::CategoricalColumns& each : spec.categorical)
    columns.categories.push_back(chooser.take(each.columns));
  if (!spec.split_column.empty())
    columns.split = chooser.find(spec.split_column, spec.features.empty());
  if (!spec.no_features)
    columns.features = spec.features.empty() ? chooser.rest() : chooser.take(spec.features);
  checkFeatures(file, columns, spec);
  if (spec.header) checkNamesDiffer(file, columns);
  return columns;
}

CsvColumns chooseTrained(const std::string& file, std::vector<std::string> names,
                         const TrainedColumns& trained) {
  CsvColumns columns;
  columns.names = std::move(names);
  std::map<std::string, size_t> places;
  std::set<std::string> twice;
  for (size_t i = 0; i < columns.names.size(); ++i) {
    columns.names[i] = asUtf8(columns.names[i]);
    if (!places.emplace(columns.names[i], i).second) twice.insert(columns.names[i]);
  }
  std::vector<std::string> missing;
  const auto find = [&](const std::vector<std::string>& wanted) {
    std::vector<size_t> found;
    for (const std::string& each : wanted) {
      const std::string name = asUtf8(each);
      const auto place = places.find(name);
      if (place == places.end()) {
        missing.push_back("'" + name + "'");
        continue;
      }
      if (twice.contains(name))
        failColumns(file,
                    fmt::format("2 columns are named '{}': give each a name of its own", name));
      found.push_back(place->second);
    }
    return found;
  };
  columns.features = find(trained.features);
  for (const std::vector<std::string>& each : trained.categories)
    columns.categories.push_back(find(each));
  if (!missing.empty())
    failColumns(file, fmt::format("it has no column{} {}, which the model is trained on; its "
                                  "columns are {}",
                                  missing.size() == 1 ? "" : "s", listText(missing),
                                  listText(shortened(columns.names))));
  for (const std::string& target : trained.targets)
    if (const auto place = places.find(asUtf8(target)); place != places.end())
      columns.truths.push_back(place->second);
  if (columns.truths.size() != trained.targets.size()) columns.truths.clear();
  return columns;
}

CsvColumns chooseNumbered(const std::string& file, std::vector<std::string> names,
                          const TrainedColumns& trained) {
  const auto numbersOf = [](const std::vector<std::string>& columns) {
    std::vector<uint64_t> numbers;
    for (const std::string& column : columns) numbers.push_back(*numberOf<uint64_t>(column));
    return numbers;
  };
  const std::vector<uint64_t> learnt = numbersOf(trained.targets);
  const std::vector<uint64_t> features = numbersOf(trained.features);
  const bool lacks = names.size() + learnt.size() == trained.all;
  if (!lacks && names.size() != trained.all) {
    if (trained.categories.empty() && names.size() == features.size() &&
        std::is_sorted(features.begin(), features.end())) {
      const std::vector<std::string> all = names;
      return chooseTrained(file, std::move(names), {all, {}});
    }
    failColumns(file, fmt::format("it has {} columns, and the training table {}, or {} without "
                                  "the label or targets",
                                  names.size(), trained.all, trained.all - learnt.size()));
  }
  const auto moved = [&](std::vector<std::string> columns) {
    for (std::string& column : columns) {
      const uint64_t number = *numberOf<uint64_t>(column);
      const auto before = std::count_if(learnt.begin(), learnt.end(),
                                        [number](uint64_t each) { return each < number; });
      if (lacks) column = std::to_string(number - static_cast<uint64_t>(before));
    }
    return columns;
  };
  TrainedColumns here{moved(trained.features), {}, names.size()};
  if (!lacks) here.targets = trained.targets;
  for (const std::vector<std::string>& each : trained.categories)
    here.categories.push_back(moved(each));
  return chooseTrained(file, std::move(names), here);
}

CsvColumns chooseFeatures(const std::string& file, std::vector<std::string> names,
                          const cluster::CsvSpec& spec, int64_t width) {
  DTF_CHECK(spec.categorical.empty());
  CsvColumns columns;
  columns.names = std::move(names);
  Chooser chooser(file, columns);
  if (!spec.features.empty()) {
    columns.features = chooser.take(spec.features);
    return columns;
  }
  if (static_cast<int64_t>(columns.names.size()) != width) {
    if (!spec.label.empty()) columns.truths.push_back(chooser.take(spec.label));
    for (const std::string& target : spec.targets) columns.truths.push_back(chooser.take(target));
  }
  columns.features = chooser.rest();
  checkFeatures(file, columns, spec);
  return columns;
}

std::vector<size_t> namedColumns(const std::string& file, const CsvColumns& columns,
                                 std::span<const std::string> wanted) {
  std::vector<size_t> named;
  const ColumnIndex index(columns.names);
  const auto add = [&](const std::string& name) {
    const bool is_named =
        std::find(columns.names.begin(), columns.names.end(), name) != columns.names.end();
    const std::optional<uint64_t> number = numberOf<uint64_t>(name);
    if (!is_named && !(number && *number >= 1 && *number <= columns.names.size()))
      failColumns(file, fmt::format("there is no column '{}': the columns are {}", name,
                                    listText(shortened(columns.names))));
    size_t column = 0;
    if (const std::string why = index.find(name, column); !why.empty()) failColumns(file, why);
    if (std::find(named.begin(), named.end(), column) == named.end()) named.push_back(column);
  };
  for (const std::string& words : wanted) {
    const bool is_name =
        std::find(columns.names.begin(), columns.names.end(), words) != columns.names.end();
    if (is_name)
      add(words);
    else
      for (const std::string& name : split(words, ',')) add(std::string(trimmed(name)));
  }
  return named;
}

void checkHeader(const std::string& file, const CsvColumns& columns, const cluster::CsvSpec& spec) {
  if (!spec.header || spec.header_is_said) return;
  // Columns of numbers.
  std::vector<size_t> of_numbers = columns.features;
  of_numbers.insert(of_numbers.end(), columns.targets.begin(), columns.targets.end());
  bool is_word = false;
  for (size_t i = 0; i < columns.categories.size(); ++i) {
    const cluster::CategoricalColumns& category = spec.categorical[i];
    const std::vector<std::string>& words = category.vocabulary_list;
    for (const size_t column : columns.categories[i])
      is_word =
          is_word || std::find(words.begin(), words.end(), columns.names[column]) != words.end();
    if (category.hash_bucket_size == 0 && words.empty())
      of_numbers.insert(of_numbers.end(), columns.categories[i].begin(),
                        columns.categories[i].end());
  }
  const std::vector<std::string>& classes = spec.class_names;
  if (columns.label && classes.empty() && columns.features.empty())
    of_numbers.push_back(*columns.label);
  const bool numbers =
      !of_numbers.empty() &&
      std::all_of(
          of_numbers.begin(), of_numbers.end(),
          [&](size_t column) { return numberOf<double>(columns.names[column]).has_value(); }) &&
      (columns.features.size() < 2 || !areConsecutive(columns.names, columns.features));
  const bool is_class = columns.label && std::find(classes.begin(), classes.end(),
                                                   columns.names[*columns.label]) != classes.end();
  if (numbers || is_class || is_word)
    failColumns(file,
                "the first line looks like a record: say 'header: false' if it is one, or 'header: "
                "true' if it names the columns");
}

}  // namespace dtf::data
