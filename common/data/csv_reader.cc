#include "common/data/csv_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/data/bad_records.h"
#include "common/data/csv_categories.h"
#include "common/data/csv_columns.h"
#include "common/data/csv_numbers.h"
#include "common/data/csv_records.h"
#include "common/data/growing_block.h"
#include "common/yaml/key_table.h"

namespace dtf::data {

namespace {

std::vector<std::string> fieldsOf(const CsvRecords& records) {
  std::vector<std::string> fields;
  for (size_t i = 0; i < records.size(); ++i) fields.emplace_back(trimmed(records.field(i)));
  return fields;
}

// The names of the columns of a file whose first record is in `records`.
std::vector<std::string> readNames(const std::string& file, const CsvRecords& records,
                                   const cluster::CsvSpec& spec) {
  std::vector<std::string> names = fieldsOf(records);
  if (spec.header) {
    const bool numbers = std::all_of(names.begin(), names.end(), [](const std::string& name) {
      return numberOf<double>(name).has_value();
    });
    if (numbers && !spec.header_is_said)
      throw Error(
          ErrorCode::kBadConfig,
          file +
              ": the first line has numbers only: say 'header: true' if they name the columns, "
              "or 'header: false' if it is a record");
  } else {
    for (size_t i = 0; i < names.size(); ++i) names[i] = fmt::format("{}", i + 1);
  }
  return names;
}

PartSpec featuresOf(const CsvColumns& columns, const cluster::CsvSpec& spec) {
  return {kFeatures, spec.whole_features ? DType::kInt32 : DType::kFloat32,
          Shape{static_cast<int64_t>(columns.features.size())}};
}

PartSpec labelsOf(const CsvColumns& columns) {
  if (columns.label) return {kLabels, DType::kInt32, Shape()};
  return {kLabels, DType::kFloat32, Shape{static_cast<int64_t>(columns.targets.size())}};
}

// Where there are no other features the first categories are those. Together they keep as much in
// memory as one part.
std::vector<CategoryReader> categoryReaders(const cluster::CsvSpec& spec) {
  std::vector<CategoryReader> readers;
  const size_t resident_max = kResidentBytesMax / std::max<size_t>(spec.categorical.size(), 1);
  for (const cluster::CategoricalColumns& each : spec.categorical)
    readers.emplace_back(each, spec.no_features && readers.empty() ? kFeatures : each.name,
                         resident_max);
  return readers;
}

template <class T>
void appendTo(GrowingBlock& block, const std::vector<T>& values) {
  block.append(values.data(), values.size() * sizeof(T));
}

// Collects the records of one table.
// Borrows: the settings.
class TableReader {
 public:
  // `bad_max`: so many records may be bad.
  TableReader(const cluster::CsvSpec& spec, int64_t bad_max)
      : spec_(spec), categories_(categoryReaders(spec)), bad_("records", bad_max) {
    for (const std::string& name : spec.class_names)
      classes_.emplace(name, static_cast<int32_t>(classes_.size()));
  }

  void readFile(const std::filesystem::path& path) {
    CsvRecords records(path, spec_.delimiter);
    if (!records.next()) throw Error(ErrorCode::kBadData, path.string() + ": the file is empty");
    CsvColumns columns =
        chooseColumns(path.string(), readNames(path.string(), records, spec_), spec_);
    checkHeader(path.string(), columns, spec_);
    if (columns_ && columns_->names != columns.names)
      throw Error(ErrorCode::kBadConfig,
                  path.string() + ": its columns are others than those of " + names_);
    if (!columns_) columns_ = std::move(columns);
    names_ += (names_.empty() ? "" : ", ") + path.string();
    readAll(records);
  }

  // Of a reader that reads nothing else.
  CsvExamples readExamples(const std::filesystem::path& path, int64_t width,
                           const TrainedColumns* trained) {
    CsvRecords records(path, spec_.delimiter);
    if (!records.next()) throw Error(ErrorCode::kBadData, path.string() + ": the file is empty");
    std::vector<std::string> names = readNames(path.string(), records, spec_);
    if (trained == nullptr)
      columns_ = chooseFeatures(path.string(), std::move(names), spec_, width);
    else if (spec_.header)
      columns_ = chooseTrained(path.string(), std::move(names), *trained);
    else
      columns_ = chooseNumbered(path.string(), std::move(names), *trained);
    if (columns_->categories.size() != spec_.categorical.size())
      throw Error(
          ErrorCode::kBadConfig,
          fmt::format("{}: the model reads {} categories, and the job's file has {}", path.string(),
                      columns_->categories.size(), spec_.categorical.size()));
    names_ = path.string();
    readAll(records);
    finishRecords("there is no record");
    CsvExamples examples = finishExamples();
    examples.unread = bad_.take();
    examples.truths = std::move(truths_);
    return examples;
  }

  Dataset finish() {
    finishRecords("there is no record behind the header");
    CsvExamples examples = finishExamples();
    Part labels(labelsOf(*columns_), names_, labels_.finish());
    return {std::move(examples.features), std::move(labels), std::move(examples.categories),
            bad_.take()};
  }

 private:
  // The first one is there.
  void readAll(CsvRecords& records) {
    if (!spec_.header) addRecord(records);
    while (records.next()) addRecord(records);
  }

  void finishRecords(const char* none) const {
    if (good_records_ == 0 && bad_.count() == 0)
      throw Error(ErrorCode::kBadData, names_ + ": " + none);
    bad_.finish(names_, good_records_);
  }

  CsvExamples finishExamples() {
    std::vector<Part> categories;
    for (CategoryReader& reader : categories_) categories.push_back(reader.finish(names_));
    if (!spec_.no_features)
      return {{featuresOf(*columns_, spec_), names_, features_.finish()}, std::move(categories)};
    Part features = std::move(categories.front());
    categories.erase(categories.begin());
    return {std::move(features), std::move(categories)};
  }

  void addRecord(const CsvRecords& records) {
    record_.features.clear();
    record_.indices.clear();
    record_.targets.clear();
    for (CategoryReader& reader : categories_) reader.drop();
    std::string wrong = readRecord(records);
    if (wrong.empty()) {
      ++good_records_;
      appendTo(features_, record_.features);
      appendTo(features_, record_.indices);  // one of the two
      appendTo(labels_, record_.targets);
      if (columns_->label) labels_.append(&record_.label, sizeof(record_.label));
      for (CategoryReader& reader : categories_) reader.keep();
      for (const size_t column : columns_->truths)
        truths_.emplace_back(trimmed(records.field(column)));
      return;
    }
    if (const std::string joined = records.joinedText(); !joined.empty()) wrong += "; " + joined;
    bad_.add({good_records_ + bad_.count(), std::move(wrong)});
  }

  // Fills record_. Returns what is wrong with it and where, or nothing.
  std::string readRecord(const CsvRecords& records) {
    if (const std::optional<size_t> broken = records.broken())
      return fmt::format("{}: something follows the closing quote of this field",
                         records.where(*broken));
    if (records.size() != columns_->names.size())
      return fmt::format("{}: the record has {} fields{}, the others have {}",
                         records.where(records.size() - 1), records.size(),
                         records.lines() > 1 ? fmt::format(" in {} lines", records.lines()) : "",
                         columns_->names.size());
    for (const size_t column : columns_->features) {
      if (spec_.whole_features ? addIndex(records, column)
                               : addNumber(records, column, record_.features))
        continue;
      return noNumber(records, column, spec_.whole_features);
    }
    for (const size_t column : columns_->targets)
      if (!addNumber(records, column, record_.targets)) return noNumber(records, column);
    for (size_t i = 0; i < categories_.size(); ++i)
      for (const size_t column : columns_->categories[i])
        if (const std::string wrong = categories_[i].add(trimmed(records.field(column)));
            !wrong.empty())
          return fmt::format("{}: '{}' in column '{}' {}", records.where(column),
                             shown(records.field(column)), columns_->names[column], wrong);
    return columns_->label ? addLabel(records, *columns_->label) : "";
  }

  static bool addNumber(const CsvRecords& records, size_t column, std::vector<float>& to) {
    // As a double first: what is too small for a float is 0, and no mistake.
    const std::optional<double> number = numberOf<double>(trimmed(records.field(column)));
    if (!number || !std::isfinite(static_cast<float>(*number))) return false;
    to.push_back(static_cast<float>(*number));
    return true;
  }

  // "3.0" is a whole number, too: tables have it where a column has gaps.
  bool addIndex(const CsvRecords& records, size_t column) {
    const std::optional<double> number = numberOf<double>(trimmed(records.field(column)));
    if (!number || *number != std::floor(*number) || *number < 0 ||
        *number > std::numeric_limits<int32_t>::max())
      return false;
    record_.indices.push_back(static_cast<int32_t>(*number));
    return true;
  }

  std::string noNumber(const CsvRecords& records, size_t column, bool whole = false) const {
    return fmt::format(
        "{}: '{}' in column '{}' is no {}{}", records.where(column), shown(records.field(column)),
        columns_->names[column],
        whole ? "whole number from 0 to 2147483647, which names a row of an embedding" : "number",
        wordHint(trimmed(records.field(column)), column));
  }

  // Once: a column of words has one in each record.
  std::string_view wordHint(std::string_view text, size_t column) const {
    const bool is_word = !text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) != 0;
    if (!is_word || bad_.count() > 0) return "";
    const std::vector<size_t>& features = columns_->features;
    if (std::find(features.begin(), features.end(), column) == features.end())
      return "; a column of words to learn is a label_column, with class_names";
    return "; list a column of words under categorical_columns, or leave it out with "
           "feature_columns";
  }

  // " - did you mean 'rome'?" Empty: no word is near.
  static std::string nearText(std::string_view text, const std::vector<std::string>& words) {
    const std::vector<std::string_view> all(words.begin(), words.end());
    const std::string near = yaml::nearestKey(text, all);
    return near.empty() ? "" : fmt::format(" - did you mean '{}'?", near);
  }

  std::string addLabel(const CsvRecords& records, size_t column) {
    const std::string_view text = trimmed(records.field(column));
    if (classes_.empty()) {
      const std::optional<int32_t> label = numberOf<int32_t>(text);
      if (label && *label >= 0) record_.label = *label;
      if (label && *label >= 0) return "";
      return fmt::format(
          "{}: '{}' in column '{}' is no class, a whole number from 0: list the classes as the "
          "table writes them with class_names",
          records.where(column), shown(text), columns_->names[column]);
    }
    const auto found = classes_.find(text);
    if (found == classes_.end())
      return fmt::format("{}: '{}' in column '{}' is none of the class_names{}",
                         records.where(column), shown(text), columns_->names[column],
                         nearText(text, spec_.class_names));
    record_.label = found->second;
    return "";
  }

  // Fit for a line of the log.
  static std::string shown(std::string_view text) {
    constexpr size_t kShownMax = 40;
    std::string shown(text.substr(0, kShownMax));
    std::replace_if(
        shown.begin(), shown.end(), [](unsigned char c) { return c < 0x20 || c == '"'; }, ' ');
    return shown + (text.size() > kShownMax ? "..." : "");
  }

  const cluster::CsvSpec& spec_;
  std::map<std::string, int32_t, std::less<>> classes_;
  std::optional<CsvColumns> columns_;  // of the first file
  std::string names_;                  // of the files
  struct {
    std::vector<float> features, targets;
    std::vector<int32_t> indices;  // features that are looked up
    int32_t label = 0;
  } record_;  // the one that is being read
  GrowingBlock features_;
  GrowingBlock labels_;  // or targets
  std::vector<CategoryReader> categories_;
  int64_t good_records_ = 0;
  BadRecords bad_;
  std::vector<std::string> truths_;
};

}  // namespace

CsvHeader readCsvHeader(std::span<const std::filesystem::path> files,
                        const cluster::CsvSpec& spec) {
  DTF_CHECK(!files.empty());
  std::optional<CsvColumns> first;
  for (const std::filesystem::path& path : files) {
    CsvRecords records(path, spec.delimiter);
    if (!records.next()) throw Error(ErrorCode::kBadData, path.string() + ": the file is empty");
    CsvColumns columns =
        chooseColumns(path.string(), readNames(path.string(), records, spec), spec);
    checkHeader(path.string(), columns, spec);
    if (first && first->names != columns.names)
      throw Error(ErrorCode::kBadConfig,
                  path.string() + ": its columns are others than those of " + files[0].string());
    if (!first) first = std::move(columns);
  }
  CsvHeader header{featuresOf(*first, spec), labelsOf(*first), {}, {}};
  if (spec.no_features) header.features = categoryReaders(spec).front().spec();
  const auto namesOf = [&first](const std::vector<size_t>& columns) {
    std::vector<std::string> names;
    for (const size_t column : columns) names.push_back(first->names[column]);
    return names;
  };
  header.columns = first->names;
  header.trained.all = first->names.size();
  header.trained.features = namesOf(first->features);
  for (const std::vector<size_t>& columns : first->categories)
    header.trained.categories.push_back(namesOf(columns));
  header.trained.targets = namesOf(first->targets);
  if (first->label) header.trained.targets = {first->names[*first->label]};
  return header;
}

Dataset readCsv(std::span<const std::filesystem::path> files, const cluster::CsvSpec& spec) {
  DTF_CHECK(!files.empty());
  TableReader reader(spec, spec.max_bad_records);
  for (const std::filesystem::path& path : files) reader.readFile(path);
  return reader.finish();
}

CsvExamples readCsvExamples(const std::filesystem::path& file, const cluster::CsvSpec& spec,
                            int64_t width, const TrainedColumns* trained) {
  DTF_CHECK(width > 0);
  return TableReader(spec, kAllMayBeBad).readExamples(file, width, trained);
}

}  // namespace dtf::data
