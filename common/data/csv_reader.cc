#include "common/data/csv_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/data/csv_records.h"
#include "common/data/growing_block.h"
#include "common/yaml/key_table.h"

namespace dtf::data {

namespace {

constexpr int64_t kBadShownMax = 10;  // in the log

[[noreturn]] void failColumns(const std::string& file, const std::string& why) {
  throw Error(ErrorCode::kBadConfig, file + ": " + why);
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

template <class T>
std::optional<T> numberOf(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>)
    if (!std::isfinite(value)) return std::nullopt;
  return value;
}

// Which columns are read.
struct Columns {
  std::vector<std::string> names;  // "price", or "3" where there is no header
  std::vector<size_t> features;
  std::vector<size_t> targets;
  std::optional<size_t> label;
};

std::vector<std::string> fieldsOf(const CsvRecords& records) {
  std::vector<std::string> fields;
  for (size_t i = 0; i < records.size(); ++i) fields.emplace_back(trimmed(records.field(i)));
  return fields;
}

size_t columnOf(const std::string& file, const Columns& columns, const std::string& wanted) {
  const auto named = std::find(columns.names.begin(), columns.names.end(), wanted);
  const auto times = std::count(columns.names.begin(), columns.names.end(), wanted);
  if (times > 1) failColumns(file, fmt::format("{} columns are named '{}'", times, wanted));
  if (times == 1) return static_cast<size_t>(named - columns.names.begin());
  const std::optional<uint64_t> number = numberOf<uint64_t>(wanted);
  if (number && *number >= 1 && *number <= columns.names.size()) return *number - 1;
  const std::vector<std::string_view> names(columns.names.begin(), columns.names.end());
  constexpr size_t kListedMax = 20;
  failColumns(file, fmt::format("there is no column '{}' among {}{}", wanted, names.size(),
                                names.size() > kListedMax ? "" : yaml::suggestion(wanted, names)));
}

Columns chooseColumns(const std::string& file, std::vector<std::string> names,
                      const cluster::CsvSpec& spec) {
  Columns columns;
  columns.names = std::move(names);
  std::vector<bool> taken(columns.names.size());
  const auto take = [&](const std::string& wanted) {
    const size_t column = columnOf(file, columns, wanted);
    if (taken[column]) failColumns(file, fmt::format("column '{}' is asked for twice", wanted));
    taken[column] = true;
    return column;
  };
  if (!spec.label.empty()) columns.label = take(spec.label);
  for (const std::string& target : spec.targets) columns.targets.push_back(take(target));
  for (const std::string& feature : spec.features) columns.features.push_back(take(feature));
  DTF_CHECK(columns.label.has_value() == columns.targets.empty());
  if (spec.features.empty())
    for (size_t i = 0; i < taken.size(); ++i)
      if (!taken[i]) columns.features.push_back(i);
  if (columns.features.empty()) failColumns(file, "no column is left for the features");
  return columns;
}

// Only by name: a number would be a place, and another table may have something else there.
Columns chooseTrained(const std::string& file, std::vector<std::string> names,
                      std::span<const std::string> trained) {
  Columns columns;
  columns.names = std::move(names);
  for (const std::string& name : trained) {
    const auto found = std::find(columns.names.begin(), columns.names.end(), name);
    if (found == columns.names.end())
      failColumns(file, fmt::format("it has no column '{}', which the model is trained on", name));
    columns.features.push_back(columnOf(file, columns, name));
  }
  return columns;
}

// Of what has neither label nor targets, or has them to no purpose.
Columns chooseFeatures(const std::string& file, std::vector<std::string> names,
                       const cluster::CsvSpec& spec, int64_t width) {
  Columns columns;
  columns.names = std::move(names);
  for (const std::string& feature : spec.features)
    columns.features.push_back(columnOf(file, columns, feature));
  if (!spec.features.empty()) return columns;
  std::vector<bool> left_out(columns.names.size());
  if (static_cast<int64_t>(columns.names.size()) != width) {
    std::vector<std::string> others = spec.targets;
    if (!spec.label.empty()) others.push_back(spec.label);
    for (const std::string& other : others) left_out[columnOf(file, columns, other)] = true;
  }
  for (size_t i = 0; i < left_out.size(); ++i)
    if (!left_out[i]) columns.features.push_back(i);
  if (columns.features.empty()) failColumns(file, "no column is left for the features");
  return columns;
}

// The names of the columns of a file whose first record is in `records`.
std::vector<std::string> readNames(const std::string& file, const CsvRecords& records,
                                   const cluster::CsvSpec& spec) {
  std::vector<std::string> names = fieldsOf(records);
  if (spec.header) {
    const bool numbers = std::all_of(names.begin(), names.end(), [](const std::string& name) {
      return numberOf<double>(name).has_value();
    });
    if (numbers)
      failColumns(file, "the first line has numbers only: set 'header: false' if it names nothing");
  } else {
    for (size_t i = 0; i < names.size(); ++i) names[i] = fmt::format("{}", i + 1);
  }
  return names;
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

// A first record taken for a header would be lost without a word. Columns may be named 0, 1, 2.
void checkHeader(const std::string& file, const Columns& columns, const cluster::CsvSpec& spec) {
  if (!spec.header) return;
  const auto isNumber = [&](size_t column) {
    return numberOf<double>(columns.names[column]).has_value();
  };
  const std::vector<std::string>& classes = spec.class_names;
  const bool numbers =
      std::all_of(columns.features.begin(), columns.features.end(), isNumber) &&
      std::all_of(columns.targets.begin(), columns.targets.end(), isNumber) &&
      (columns.features.size() < 2 || !areConsecutive(columns.names, columns.features));
  const bool is_class = columns.label && std::find(classes.begin(), classes.end(),
                                                   columns.names[*columns.label]) != classes.end();
  if (numbers || is_class)
    failColumns(file,
                "the first line looks like a record: set 'header: false' if it names nothing");
}

PartSpec featuresOf(const Columns& columns) {
  return {kFeatures, DType::kFloat32, Shape{static_cast<int64_t>(columns.features.size())}};
}

PartSpec labelsOf(const Columns& columns) {
  if (columns.label) return {kLabels, DType::kInt32, Shape()};
  return {kLabels, DType::kFloat32, Shape{static_cast<int64_t>(columns.targets.size())}};
}

template <class T>
void appendTo(GrowingBlock& block, const std::vector<T>& values) {
  block.append(values.data(), values.size() * sizeof(T));
}

// Collects the records of one table.
// Borrows: the settings.
class TableReader {
 public:
  explicit TableReader(const cluster::CsvSpec& spec) : spec_(spec) {
    for (const std::string& name : spec.class_names)
      classes_.emplace(name, static_cast<int32_t>(classes_.size()));
  }

  void readFile(const std::filesystem::path& path) {
    CsvRecords records(path, spec_.delimiter);
    if (!records.next()) throw Error(ErrorCode::kBadData, path.string() + ": the file is empty");
    Columns columns = chooseColumns(path.string(), readNames(path.string(), records, spec_), spec_);
    checkHeader(path.string(), columns, spec_);
    if (columns_ && columns_->names != columns.names)
      failColumns(path.string(), "its columns are others than those of " + names_);
    if (!columns_) columns_ = std::move(columns);
    names_ += (names_.empty() ? "" : ", ") + path.string();
    if (!spec_.header) addRecord(records);
    while (records.next()) addRecord(records);
  }

  // Of a reader that reads nothing else.
  Part readFeatures(const std::filesystem::path& path, int64_t width,
                    std::span<const std::string> trained) {
    CsvRecords records(path, spec_.delimiter);
    if (!records.next()) throw Error(ErrorCode::kBadData, path.string() + ": the file is empty");
    std::vector<std::string> names = readNames(path.string(), records, spec_);
    columns_ = trained.empty() ? chooseFeatures(path.string(), std::move(names), spec_, width)
                               : chooseTrained(path.string(), std::move(names), trained);
    if (!spec_.header) addRecord(records);
    while (records.next()) addRecord(records);
    if (features_.size() == 0)
      throw Error(ErrorCode::kBadData, path.string() + ": there is no record");
    return {featuresOf(*columns_), path.string(), features_.finish()};
  }

  CsvTable finish() {
    const PartSpec features = featuresOf(*columns_);
    const size_t count = features_.size() / features.bytes();
    if (count == 0 && bad_records_ == 0)
      throw Error(ErrorCode::kBadData, names_ + ": there is no record behind the header");
    if (count == 0)
      throw Error(ErrorCode::kBadData,
                  fmt::format("{}: no good record among {}: {}", names_, bad_records_, first_bad_));
    if (bad_records_ > 0)
      log::warning("event=bad_records_left_out records={} of={} files=\"{}\"", bad_records_,
                   static_cast<int64_t>(count) + bad_records_, names_);
    Part labels(labelsOf(*columns_), names_, labels_.finish());
    return {Dataset({features, names_, features_.finish()}, std::move(labels)), bad_records_};
  }

 private:
  void addRecord(const CsvRecords& records) {
    record_.features.clear();
    record_.targets.clear();
    const std::string wrong = readRecord(records);
    if (wrong.empty()) {
      appendTo(features_, record_.features);
      appendTo(labels_, record_.targets);
      if (columns_->label) labels_.append(&record_.label, sizeof(record_.label));
      return;
    }
    if (++bad_records_ == 1) first_bad_ = wrong;
    if (bad_records_ > spec_.max_bad_records)
      throw Error(ErrorCode::kBadData,
                  fmt::format("{}: that is bad record number {}, and max_bad_records is {}", wrong,
                              bad_records_, spec_.max_bad_records));
    if (bad_records_ <= kBadShownMax) log::warning("event=bad_record reason=\"{}\"", wrong);
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
    for (const size_t column : columns_->features)
      if (!addNumber(records, column, record_.features)) return noNumber(records, column);
    for (const size_t column : columns_->targets)
      if (!addNumber(records, column, record_.targets)) return noNumber(records, column);
    return columns_->label ? addLabel(records, *columns_->label) : "";
  }

  static bool addNumber(const CsvRecords& records, size_t column, std::vector<float>& to) {
    // As a double first: what is too small for a float is 0, and no mistake.
    const std::optional<double> number = numberOf<double>(trimmed(records.field(column)));
    if (!number || !std::isfinite(static_cast<float>(*number))) return false;
    to.push_back(static_cast<float>(*number));
    return true;
  }

  std::string noNumber(const CsvRecords& records, size_t column) const {
    return fmt::format("{}: '{}' in column '{}' is no number", records.where(column),
                       shown(records.field(column)), columns_->names[column]);
  }

  std::string addLabel(const CsvRecords& records, size_t column) {
    const std::string_view text = trimmed(records.field(column));
    if (classes_.empty()) {
      const std::optional<int32_t> label = numberOf<int32_t>(text);
      if (label && *label >= 0) record_.label = *label;
      if (label && *label >= 0) return "";
      return fmt::format(
          "{}: '{}' in column '{}' is no class, a whole number from 0 (for words "
          "there is class_names)",
          records.where(column), shown(text), columns_->names[column]);
    }
    const auto found = classes_.find(text);
    if (found == classes_.end())
      return fmt::format("{}: '{}' in column '{}' is none of the class_names",
                         records.where(column), shown(text), columns_->names[column]);
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
  std::optional<Columns> columns_;  // of the first file
  std::string names_;               // of the files
  struct {
    std::vector<float> features, targets;
    int32_t label = 0;
  } record_;  // the one that is being read
  GrowingBlock features_;
  GrowingBlock labels_;  // or targets
  int64_t bad_records_ = 0;
  std::string first_bad_;  // what is wrong with it
};

}  // namespace

CsvHeader readCsvHeader(std::span<const std::filesystem::path> files,
                        const cluster::CsvSpec& spec) {
  DTF_CHECK(!files.empty());
  std::optional<Columns> first;
  for (const std::filesystem::path& path : files) {
    CsvRecords records(path, spec.delimiter);
    if (!records.next()) throw Error(ErrorCode::kBadData, path.string() + ": the file is empty");
    Columns columns = chooseColumns(path.string(), readNames(path.string(), records, spec), spec);
    checkHeader(path.string(), columns, spec);
    if (first && first->names != columns.names)
      failColumns(path.string(), "its columns are others than those of " + files[0].string());
    if (!first) first = std::move(columns);
  }
  CsvHeader header{featuresOf(*first), labelsOf(*first), {}};
  for (const std::vector<size_t>* columns : {&first->features, &first->targets})
    for (const size_t column : *columns) header.columns.push_back(first->names[column]);
  return header;
}

CsvTable readCsv(std::span<const std::filesystem::path> files, const cluster::CsvSpec& spec) {
  DTF_CHECK(!files.empty());
  TableReader reader(spec);
  for (const std::filesystem::path& path : files) reader.readFile(path);
  return reader.finish();
}

Part readCsvFeatures(const std::filesystem::path& file, const cluster::CsvSpec& spec, int64_t width,
                     std::span<const std::string> trained) {
  DTF_CHECK(width > 0);
  cluster::CsvSpec strict = spec;
  strict.max_bad_records = 0;
  return TableReader(strict).readFeatures(file, width, trained);
}

}  // namespace dtf::data
