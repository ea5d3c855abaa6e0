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
#include "common/data/csv_header.h"
#include "common/data/csv_numbers.h"
#include "common/data/csv_records.h"
#include "common/data/growing_block.h"
#include "common/yaml/key_table.h"

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
  // `bad_max`: so many records may be bad.
  TableReader(const cluster::CsvSpec& spec, int64_t bad_max)
      : spec_(spec),
        may_be_bad_(bad_max > 0),
        categories_(categoryReaders(spec)),
        bad_("records", bad_max, kBadCountedMax) {
    for (const std::string& name : spec.class_names)
      classes_.emplace(name, static_cast<int32_t>(classes_.size()));
  }

  void readFile(const std::filesystem::path& path) {
    CsvRecords records(path, spec_.delimiter);
    if (!records.next()) throw Error(ErrorCode::kBadData, path.string() + ": the file is empty");
    checkDelimiter(path.string(), records, spec_);
    CsvColumns columns =
        chooseColumns(path.string(), readNames(path.string(), records, spec_), spec_);
    checkHeader(path.string(), columns, spec_);
    if (columns_ && columns_->names != columns.names)
      throw Error(ErrorCode::kBadConfig, path.string() + ": it has other columns than " + names_);
    if (!columns_) columns_ = std::move(columns);
    names_ += (names_.empty() ? "" : ", ") + path.string();
    readAll(records);
  }

  // Reads the only table of this reader.
  CsvExamples readExamples(const std::filesystem::path& path, int64_t width,
                           const TrainedColumns* trained, std::span<const std::string> keep) {
    predicts_ = true;
    CsvRecords records(path, spec_.delimiter);
    if (!records.next()) throw Error(ErrorCode::kBadData, path.string() + ": the file is empty");
    std::vector<std::string> names = readNames(path.string(), records, spec_);
    if (!isAllThatIsRead(names, width, trained)) checkDelimiter(path.string(), records, spec_);
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
    keepColumns(keep);
    readAll(records);
    finishRecords("there is no record");
    CsvExamples examples = finishExamples();
    examples.unread = bad_.take();
    examples.truths = std::move(truths_);
    examples.kept = std::move(kept_);
    examples.other_words = otherWords();
    return examples;
  }

  Dataset finish() {
    finishRecords("there is no record behind the header");
    CsvExamples examples = finishExamples();
    Part labels(labelsOf(*columns_), names_, labels_.finish());
    return {std::move(examples.features), std::move(labels), std::move(examples.categories),
            bad_.take(), otherWords()};
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
    if (!spec_.no_features)
      return {{featuresOf(*columns_, spec_), names_, features_.finish()}, std::move(categories)};
    Part features = std::move(categories.front());
    categories.erase(categories.begin());
    return {std::move(features), std::move(categories)};
  }

  std::vector<OtherWords> otherWords() const {
    std::vector<OtherWords> all;
    for (const auto& [column, words] : other_words_) all.push_back(words);
    return all;
  }

  // Call it before the current record is kept.
  void countOtherWords(const CsvRecords& records) {
    for (size_t i = 0; i < categories_.size(); ++i)
      for (size_t k = 0; k < columns_->categories[i].size(); ++k) {
        if (!categories_[i].isOtherWord(k)) continue;
        const size_t column = columns_->categories[i][k];
        OtherWords& words = other_words_[column];
        if (words.count++ > 0) continue;
        words.column = columns_->names[column];
        words.first = shown(trimmed(records.field(column)));
        words.where = records.where(column);
      }
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
      appendTo(features_, record_.features);
      appendTo(features_, record_.indices);  // one of the two is empty
      appendTo(labels_, record_.targets);
      if (columns_->label) labels_.append(&record_.label, sizeof(record_.label));
      countOtherWords(records);
      for (CategoryReader& reader : categories_) reader.keep();
      for (const size_t column : columns_->truths)
        truths_.emplace_back(trimmed(records.field(column)));
      return;
    }
    if (const std::string joined = records.joinedText(); !joined.empty()) wrong += "; " + joined;
    bad_.add({good_records_ + bad_.count(), std::move(wrong)});
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
    const auto is_number = [&](size_t column) { return floatOf(fields[column]).has_value(); };
    const auto is_feature = [&](size_t column) {
      return spec_.whole_features ? indexOf(fields[column]).has_value() : is_number(column);
    };
    bool can = std::ranges::all_of(columns_->features, is_feature) &&
               std::ranges::all_of(columns_->targets, is_number) &&
               (!columns_->label || classOf(fields[*columns_->label]).has_value());
    for (size_t i = 0; i < categories_.size(); ++i) {
      for (const size_t column : columns_->categories[i])
        can = can && categories_[i].add(trimmed(fields[column])).empty();
      categories_[i].drop();
    }
    return can;
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
    for (const size_t column : columns_->features) {
      const std::string_view field = records.field(column);
      if (spec_.whole_features ? append(indexOf(field), record_.indices)
                               : append(floatOf(field), record_.features))
        continue;
      return noNumber(records, column, spec_.whole_features);
    }
    for (const size_t column : columns_->targets)
      if (!append(floatOf(records.field(column)), record_.targets))
        return noNumber(records, column);
    for (size_t i = 0; i < categories_.size(); ++i)
      for (const size_t column : columns_->categories[i])
        if (const std::string wrong = categories_[i].add(trimmed(records.field(column)));
            !wrong.empty())
          return fmt::format("{}: '{}' in column '{}' {}", records.where(column),
                             shown(records.field(column)), columns_->names[column], wrong);
    return columns_->label ? addLabel(records, *columns_->label) : "";
  }

  static std::optional<float> floatOf(std::string_view field) {
    // Reads a double first: a number too small for a float is 0, and no mistake.
    const std::optional<double> number = numberOf<double>(trimmed(field));
    if (!number || !std::isfinite(static_cast<float>(*number))) return std::nullopt;
    return static_cast<float>(*number);
  }

  // "3.0" is a whole number, too: tables have it where a column has gaps.
  static std::optional<int32_t> indexOf(std::string_view field) {
    const std::optional<double> number = numberOf<double>(trimmed(field));
    if (!number || *number != std::floor(*number) || *number < 0 ||
        *number > std::numeric_limits<int32_t>::max())
      return std::nullopt;
    return static_cast<int32_t>(*number);
  }

  std::optional<int32_t> classOf(std::string_view field) const {
    if (!classes_.empty()) {
      const auto found = classes_.find(trimmed(field));
      return found == classes_.end() ? std::nullopt : std::optional(found->second);
    }
    const std::optional<int32_t> label = numberOf<int32_t>(trimmed(field));
    return label && *label >= 0 ? label : std::nullopt;
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
    if (!is_word || std::exchange(word_hinted_, true)) return "";
    if (!is_feature) return "; a column of words to learn is a label_column, with class_names";
    return "; list a column of words under categorical_columns, or leave it out with "
           "feature_columns";
  }

  // The remedies are for a job that lets no record be left out.
  std::string_view gapHint(bool is_feature) {
    if (may_be_bad_) return "; the value is missing";
    if (std::exchange(gap_hinted_, true)) return "";
    if (!is_feature)
      return "; the value is missing: mend the row, or leave it out with max_bad_records";
    return "; the value is missing: mend the row, leave it out with max_bad_records, or leave the "
           "column out with feature_columns";
  }

  // " - did you mean 'rome'?" Empty: no word is near.
  static std::string nearText(std::string_view text, const std::vector<std::string>& words) {
    const std::vector<std::string_view> all(words.begin(), words.end());
    const std::string near = yaml::nearestKey(text, all);
    return near.empty() ? "" : fmt::format(" - did you mean '{}'?", near);
  }

  std::string addLabel(const CsvRecords& records, size_t column) {
    const std::string_view text = trimmed(records.field(column));
    if (const std::optional<int32_t> label = classOf(text)) {
      record_.label = *label;
      return "";
    }
    if (classes_.empty())
      return fmt::format(
          "{}: '{}' in column '{}' is no class, a whole number from 0: list the classes as the "
          "table writes them with class_names",
          records.where(column), shown(text), columns_->names[column]);
    return fmt::format("{}: '{}' in column '{}' is none of the class_names{}",
                       records.where(column), shown(text), columns_->names[column],
                       nearText(text, spec_.class_names));
  }

  // Returns the text fit for a line of the log.
  static std::string shown(std::string_view text) {
    constexpr size_t kShownMax = 40;
    std::string shown(text.substr(0, kShownMax));
    std::replace_if(
        shown.begin(), shown.end(), [](unsigned char c) { return c < 0x20 || c == '"'; }, ' ');
    return shown + (text.size() > kShownMax ? "..." : "");
  }

  const cluster::CsvSpec& spec_;
  const bool may_be_bad_;
  std::map<std::string, int32_t, std::less<>> classes_;
  std::optional<CsvColumns> columns_;  // of the first file
  std::string names_;                  // of the files
  struct {
    std::vector<float> features, targets;
    std::vector<int32_t> indices;  // features that are looked up
    int32_t label = 0;
  } record_;  // the current one
  GrowingBlock features_;
  GrowingBlock labels_;  // or targets
  std::vector<CategoryReader> categories_;
  int64_t good_records_ = 0;
  BadRecords bad_;
  bool predicts_ = false, word_hinted_ = false, gap_hinted_ = false;
  std::map<size_t, OtherWords> other_words_;  // by column
  std::vector<std::string> truths_;
  std::vector<size_t> kept_places_;
  KeptColumns kept_;
};

}  // namespace

Dataset readCsv(std::span<const std::filesystem::path> files, const cluster::CsvSpec& spec) {
  DTF_CHECK(!files.empty());
  TableReader reader(spec, spec.max_bad_records);
  for (const std::filesystem::path& path : files) reader.readFile(path);
  return reader.finish();
}

CsvExamples readCsvExamples(const std::filesystem::path& file, const cluster::CsvSpec& spec,
                            int64_t width, const TrainedColumns* trained,
                            std::span<const std::string> keep) {
  DTF_CHECK(width > 0);
  return TableReader(spec, kAllMayBeBad).readExamples(file, width, trained, keep);
}

}  // namespace dtf::data
