#include "common/data/csv_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/data/bad_records.h"
#include "common/data/csv_categories.h"
#include "common/data/csv_classes.h"
#include "common/data/csv_columns.h"
#include "common/data/csv_fields.h"
#include "common/data/csv_header.h"
#include "common/data/csv_numbers.h"
#include "common/data/csv_other_words.h"
#include "common/data/csv_records.h"
#include "common/data/csv_split_keys.h"
#include "common/data/growing_block.h"
#include "common/data/prepared_columns.h"

namespace dtf::data {

namespace {

template <class T>
void appendTo(GrowingBlock& block, const std::vector<T>& values) {
  block.append(values.data(), values.size() * sizeof(T));
}

// So many bad records of a table are counted, so that the error names their number; a wrong
// delimiter makes each record a bad one.
constexpr size_t kBadCountedMax = 1000;

// Returns whether a table to predict from with these columns may have no other one.
bool isAllThatIsRead(const std::vector<std::string>& names, int64_t width,
                     const TrainedColumns* trained) {
  if (trained == nullptr) return width == 1;
  std::vector<std::string> read = trained->features;
  for (const std::vector<std::string>& each : trained->categories)
    read.insert(read.end(), each.begin(), each.end());
  return read.size() == 1 && (names == read || names[0] == "1");  // "1": it has no header
}

// Collects the records of one table.
// Borrows: the settings.
class TableReader {
 public:
  // `bad_max`: so many records may be bad. `keeps_keys`: for Dataset::splitKeys().
  TableReader(const cluster::CsvSpec& spec, int64_t bad_max, bool keeps_keys = false)
      : spec_(spec),
        may_be_bad_(bad_max > 0),
        is_learning_(spec.learns() && !spec.learned),
        classes_(spec, is_learning_),
        split_keys_(spec, keeps_keys),
        categories_(categoryReaders(spec)),
        bad_("records", bad_max, kBadCountedMax) {}

  void readFile(const std::filesystem::path& path) {
    CsvRecords records(path, spec_);
    if (!records.next()) throw Error(ErrorCode::kBadData, path.string() + ": the file is empty");
    checkForm(path.string(), records, spec_);
    CsvColumns columns =
        chooseColumns(path.string(), readNames(path.string(), records, spec_), spec_);
    checkHeader(path.string(), columns, spec_);
    if (columns_ && columns_->names != columns.names)
      throw Error(ErrorCode::kBadConfig, path.string() + ": it has other columns than " + names_);
    const bool is_first = !columns_.has_value();
    if (is_first) columns_ = std::move(columns);
    names_ += (names_.empty() ? "" : ", ") + path.string();
    if (is_first) choosePreparation();
    readAll(records);
  }

  // Reads the only table of this reader.
  CsvExamples readExamples(const std::filesystem::path& path, int64_t width,
                           const TrainedColumns* trained, std::span<const std::string> keep) {
    predicts_ = true;
    CsvRecords records(path, spec_);
    if (!records.next()) throw Error(ErrorCode::kBadData, path.string() + ": the file is empty");
    std::vector<std::string> names = readNames(path.string(), records, spec_);
    if (!isAllThatIsRead(names, width, trained)) checkForm(path.string(), records, spec_);
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
    choosePreparation();
    keepColumns(keep);
    readAll(records);
    finishRecords("there is no record");
    CsvExamples examples = finishExamples();
    examples.unread = bad_.take();
    examples.truths = std::move(truths_);
    examples.kept = std::move(kept_);
    examples.other_words = other_words_.all();
    return examples;
  }

  Dataset finish() {
    finishRecords("there is no record behind the header");
    CsvExamples examples = finishExamples();
    Part labels(labelsOf(*columns_), names_, labels_.finish());
    return {std::move(examples.features),
            std::move(labels),
            std::move(examples.categories),
            bad_.take(),
            other_words_.all(),
            0,
            split_keys_.take()};
  }

  UnpreparedTable finishUnprepared() {
    std::vector<std::vector<std::string>> words;
    for (size_t i = 0; i < categories_.size(); ++i)
      words.push_back(spec_.categorical[i].learned_max_size > 0 ? categories_[i].words()
                                                                : std::vector<std::string>());
    return {finish(), std::move(prepared_), std::move(words), classes_.names()};
  }

 private:
  void keepColumns(std::span<const std::string> wanted) {
    kept_places_ = namedColumns(names_, *columns_, wanted);
    for (const size_t column : kept_places_) kept_.names.push_back(columns_->names[column]);
  }

  void keepFields(const CsvRecords& records) {
    const bool is_whole = !records.broken() && records.size() == columns_->names.size();
    for (const size_t column : kept_places_)
      kept_.fields.emplace_back(is_whole ? trimmed(records.field(column)) : "");
  }

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
    PartSpec spec = featuresOf(*columns_, spec_);
    if (is_learning_) spec.shape = Shape{static_cast<int64_t>(columns_->features.size())};
    if (!spec_.no_features)
      return {{std::move(spec), names_, features_.finish()}, std::move(categories)};
    Part features = std::move(categories.front());
    categories.erase(categories.begin());
    return {std::move(features), std::move(categories)};
  }

  void addRecord(const CsvRecords& records) {
    record_.features.clear();
    record_.indices.clear();
    record_.targets.clear();
    for (CategoryReader& reader : categories_) reader.drop();
    keepFields(records);
    std::string wrong = joinsRecords(records)
                            ? fmt::format("{}: each of the {} lines of this record could be one",
                                          records.where(0), records.lines())
                            : readRecord(records);
    if (wrong.empty()) {
      ++good_records_;
      appendTo(features_, preparedFeatures());
      appendTo(features_, record_.indices);  // one of the two is empty
      appendTo(labels_, record_.targets);
      if (columns_->label) labels_.append(&record_.label, sizeof(record_.label));
      other_words_.count(records, *columns_, categories_);
      split_keys_.keep();
      for (CategoryReader& reader : categories_) reader.keep();
      for (const size_t column : columns_->truths)
        truths_.emplace_back(trimmed(records.field(column)));
      return;
    }
    if (const std::string joined = records.joinedText(); !joined.empty()) wrong += "; " + joined;
    bad_.add({good_records_ + bad_.count(), std::move(wrong)});
  }

  const std::vector<float>& preparedFeatures() {
    if (prepared_.empty() || is_learning_) return record_.features;
    record_.prepared.clear();
    prepareRecord(prepared_, record_.features, record_.prepared);
    return record_.prepared;
  }

  // Call it when the columns are known.
  void choosePreparation() {
    if (spec_.numeric.empty()) return;
    prepared_ = spec_.learned ? spec_.learned->features
                              : preparedColumns(featureNames(*columns_), spec_.numeric);
    if (prepared_.size() != columns_->features.size())
      throw Error(ErrorCode::kBadConfig,
                  fmt::format("{}: the model prepares {} columns of numbers, and the table has {}",
                              names_, prepared_.size(), columns_->features.size()));
  }

  // Returns whether a stray quote, perhaps in a column that is not read, may have joined several
  // records to one: each line of a text field is rarely a record by itself.
  bool joinsRecords(const CsvRecords& records) {
    const size_t columns = columns_->names.size();
    if (records.lines() == 1 || records.size() != columns || columns == 1) return false;
    return records.allLinesFit(
        [this](std::span<const std::string_view> line) { return canBeRecord(line); });
  }

  // Leaves record_ unchanged.
  bool canBeRecord(std::span<const std::string_view> fields) {
    const auto is_number = [&](size_t column) {
      return floatOf(fields[column], spec_.decimal).has_value();
    };
    bool can = std::ranges::all_of(columns_->targets, is_number);
    for (size_t i = 0; can && i < columns_->features.size(); ++i) {
      const size_t column = columns_->features[i];
      can = spec_.whole_features ? indexOf(fields[column], spec_.decimal).has_value()
                                 : isGap(fields[column], i) || is_number(column);
    }
    // Words that are being learned can be any text.
    if (is_learning_) return can;
    can = can && (!columns_->label || classes_.find(fields[*columns_->label]).has_value());
    for (size_t i = 0; i < categories_.size(); ++i) {
      for (const size_t column : columns_->categories[i])
        can = can && categories_[i].add(trimmed(fields[column])).empty();
      categories_[i].drop();
    }
    return can;
  }

  // Whether a missing value of feature column `i` is filled.
  bool isGap(std::string_view field, size_t i) const {
    return !prepared_.empty() &&
           prepared_[i].settings.fill != cluster::NumericColumn::Fill::kNone &&
           isMissingField(trimmed(field));
  }

  // Adds feature column `i` to record_. Returns its fault with the place, or nothing.
  std::string readFeature(const CsvRecords& records, size_t i) {
    const size_t column = columns_->features[i];
    const std::string_view field = records.field(column);
    if (spec_.whole_features)
      return append(indexOf(field, spec_.decimal), record_.indices)
                 ? ""
                 : noNumber(records, column, true);
    if (isGap(field, i)) {
      record_.features.push_back(std::numeric_limits<float>::quiet_NaN());
      return "";
    }
    if (!append(floatOf(field, spec_.decimal), record_.features)) return noNumber(records, column);
    if (!prepared_.empty() && prepared_[i].settings.log1p && record_.features.back() <= -1)
      return fmt::format(
          "{}: '{}' in column '{}' has no log1p, which is log(1 + x): its numbers "
          "are above -1",
          records.where(column), shown(trimmed(field)), columns_->names[column]);
    return "";
  }

  // Fills record_. Returns its fault with the place, or nothing.
  std::string readRecord(const CsvRecords& records) {
    if (const std::optional<size_t> broken = records.broken())
      return fmt::format("{}: something follows the closing quote of this field",
                         records.where(*broken));
    if (records.size() != columns_->names.size())
      return fmt::format("{}: the record has {} fields{}, the others have {}",
                         records.where(records.size() - 1), records.size(),
                         records.lines() > 1 ? fmt::format(" in {} lines", records.lines()) : "",
                         columns_->names.size());
    for (size_t i = 0; i < columns_->features.size(); ++i)
      if (std::string wrong = readFeature(records, i); !wrong.empty()) return wrong;
    for (const size_t column : columns_->targets)
      if (!append(floatOf(records.field(column), spec_.decimal), record_.targets))
        return noNumber(records, column);
    for (size_t i = 0; i < categories_.size(); ++i)
      for (const size_t column : columns_->categories[i])
        if (const std::string wrong = categories_[i].add(trimmed(records.field(column)));
            !wrong.empty())
          return fmt::format("{}: '{}' in column '{}' {}", records.where(column),
                             shown(records.field(column)), columns_->names[column], wrong);
    if (const std::string wrong = split_keys_.read(records, *columns_); !wrong.empty())
      return fmt::format("{}: '{}' in column '{}' {}", records.where(*columns_->split),
                         shown(trimmed(records.field(*columns_->split))),
                         columns_->names[*columns_->split], wrong);
    return columns_->label ? addLabel(records, *columns_->label) : "";
  }

  // Adds a field where it can be read.
  template <class T>
  static bool append(const std::optional<T>& value, std::vector<T>& to) {
    if (value) to.push_back(*value);
    return value.has_value();
  }

  std::string noNumber(const CsvRecords& records, size_t column, bool whole = false) {
    return fmt::format(
        "{}: '{}' in column '{}' is no {}{}", records.where(column), shown(records.field(column)),
        columns_->names[column],
        whole ? "whole number from 0 to 2147483647, which names a row of an embedding" : "number",
        hintAt(trimmed(records.field(column)), column));
  }

  // Of what is to be predicted each record has its reason, and the model is fixed. Else each once:
  // a column of words has one in each record.
  std::string_view hintAt(std::string_view text, size_t column) {
    const std::vector<size_t>& features = columns_->features;
    const bool is_feature = std::find(features.begin(), features.end(), column) != features.end();
    if (isMissingField(text)) return gapHint(is_feature);
    if (predicts_) return "; the model reads numbers in this column: mend the field";
    const bool is_word = std::isalpha(static_cast<unsigned char>(text[0])) != 0;
    if (!is_word) return formHint(text);
    if (std::exchange(word_hinted_, true)) return "";
    if (!is_feature) return "; a column of words to learn is a label_column, with class_names";
    return "; list a column of words under categorical_columns, or leave it out with "
           "feature_columns";
  }

  // Of a table in another form than the job says.
  std::string_view formHint(std::string_view text) {
    const bool has_comma = spec_.decimal == '.' && spec_.delimiter != ',' && decimalOf(text, ',');
    if ((!has_comma && !isIndexedValue(text)) || std::exchange(form_hinted_, true)) return "";
    return has_comma ? "; with 'decimal: comma' it is one"
                     : "; the file seems to be a libsvm file: set 'format: libsvm'";
  }

  // The remedies are for a job that lets no record be left out.
  std::string_view gapHint(bool is_feature) {
    if (may_be_bad_) return "; the value is missing";
    if (std::exchange(gap_hinted_, true)) return "";
    if (!is_feature)
      return "; the value is missing: mend the row, or leave it out with max_bad_records";
    return "; the value is missing: fill it with numeric_columns, mend the row, leave it out with "
           "max_bad_records, or leave the column out with feature_columns";
  }

  std::string addLabel(const CsvRecords& records, size_t column) {
    const std::string_view text = trimmed(records.field(column));
    if (const std::optional<int32_t> label = classes_.find(text)) {
      record_.label = *label;
      return "";
    }
    return fmt::format("{}: '{}' in column '{}' {}", records.where(column), shown(text),
                       columns_->names[column], classes_.faultOf(text));
  }

  const cluster::CsvSpec& spec_;
  const bool may_be_bad_;
  const bool is_learning_;  // this pass only finds numbers and words to learn
  ClassReader classes_;
  std::optional<CsvColumns> columns_;              // of the first file
  std::string names_;                              // of the files
  std::vector<cluster::PreparedColumn> prepared_;  // each feature column; empty: as they are
  SplitKeys split_keys_;
  struct {
    std::vector<float> features, targets, prepared;
    std::vector<int32_t> indices;  // features that are looked up
    int32_t label = 0;
  } record_;  // the current one
  GrowingBlock features_;
  GrowingBlock labels_;  // or targets
  std::vector<CategoryReader> categories_;
  int64_t good_records_ = 0;
  BadRecords bad_;
  bool predicts_ = false, word_hinted_ = false, gap_hinted_ = false, form_hinted_ = false;
  OtherWordsCount other_words_;
  std::vector<std::string> truths_;
  std::vector<size_t> kept_places_;
  KeptColumns kept_;
};

}  // namespace

Dataset readCsv(std::span<const std::filesystem::path> files, const cluster::CsvSpec& spec) {
  DTF_CHECK(!files.empty());
  DTF_CHECK(!spec.learns() || spec.learned);
  // Otherwise the checksums of the examples choose the sides of a split.
  const bool keeps_keys =
      spec.learns() || !spec.numeric.empty() || spec.split_by != cluster::SplitBy::kHash;
  TableReader reader(spec, spec.max_bad_records, keeps_keys);
  for (const std::filesystem::path& path : files) reader.readFile(path);
  return reader.finish();
}

UnpreparedTable readUnprepared(std::span<const std::filesystem::path> files,
                               const cluster::CsvSpec& spec) {
  DTF_CHECK(!files.empty() && spec.learns() && !spec.learned);
  TableReader reader(spec, spec.max_bad_records, true);
  for (const std::filesystem::path& path : files) reader.readFile(path);
  return reader.finishUnprepared();
}

CsvExamples readCsvExamples(const std::filesystem::path& file, const cluster::CsvSpec& spec,
                            int64_t width, const TrainedColumns* trained,
                            std::span<const std::string> keep) {
  DTF_CHECK(width > 0);
  return TableReader(spec, kAllMayBeBad).readExamples(file, width, trained, keep);
}

}  // namespace dtf::data
