#include "launcher/init/table_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/data/csv_numbers.h"
#include "common/data/csv_records.h"
#include "common/yaml/error_at.h"
#include "common/yaml/key_table.h"
#include "launcher/init/column_facts.h"
#include "launcher/init/yaml_text.h"

namespace dtf::launcher {

namespace {

namespace fs = std::filesystem;
using Use = ColumnProfile::Use;
using TableRecord = std::vector<std::string>;

constexpr size_t kSampleRecords = 200;

[[noreturn]] void failTable(const fs::path& file, ErrorCode code, const std::string& why) {
  throw yaml::ErrorAt(code, {printable(file.string()), 1, 1}, printable(why));
}

std::vector<TableRecord> sampleOf(const fs::path& file, char delimiter) {
  data::CsvRecords records(file, delimiter);
  std::vector<TableRecord> sample;
  while (sample.size() < kSampleRecords && records.next()) {
    TableRecord record;
    for (size_t i = 0; i < records.size(); ++i)
      record.emplace_back(data::trimmed(records.field(i)));
    sample.push_back(std::move(record));
  }
  return sample;
}

// The delimiter that divides nearly all records into the same number of fields, the most of all.
char findDelimiter(const fs::path& file) {
  constexpr std::array<char, 4> kDelimiters = {',', ';', '\t', '|'};
  char best = ',';
  size_t most = 1;
  for (const char delimiter : kDelimiters) {
    const std::vector<TableRecord> sample = sampleOf(file, delimiter);
    if (sample.empty()) failTable(file, ErrorCode::kBadData, "the file is empty");
    const size_t fields = sample[0].size();
    const auto alike = static_cast<size_t>(std::count_if(
        sample.begin(), sample.end(), [&](const auto& record) { return record.size() == fields; }));
    if (fields <= most || 10 * alike < 9 * sample.size()) continue;
    best = delimiter;
    most = fields;
  }
  return best;
}

// Whether the first record names the columns: a word above numbers, or one that is not among the
// words below it. A number above numbers is a value.
bool hasHeader(const std::vector<TableRecord>& sample) {
  DTF_CHECK(!sample.empty());
  const TableRecord& first = sample[0];
  int votes = 0;
  bool any_number = false;
  for (size_t column = 0; column < first.size(); ++column) {
    size_t numbers = 0, filled = 0;
    std::set<std::string> words;
    for (size_t row = 1; row < sample.size(); ++row) {
      if (column >= sample[row].size() || isMissingField(sample[row][column])) continue;
      ++filled;
      numbers += data::numberOf<double>(sample[row][column]).has_value();
      words.insert(sample[row][column]);
    }
    const bool is_number = data::numberOf<double>(first[column]).has_value();
    any_number = any_number || is_number;
    if (filled > 0 && 5 * numbers >= 4 * filled)
      votes += is_number ? -1 : isMissingField(first[column]) ? 0 : 2;
    else if (words.contains(first[column]))
      votes -= 2;
    else
      votes += is_number ? -1 : 2 * words.size() <= filled ? 1 : 0;
  }
  return votes > 0 || (votes == 0 && !any_number);
}

size_t findTarget(const fs::path& file, const std::vector<ColumnProfile>& columns,
                  const std::optional<std::string>& wanted) {
  constexpr std::array<std::string_view, 6> kUsual = {"target", "label", "class",
                                                      "y",      "Class", "outcome"};
  if (!wanted) {
    for (const std::string_view usual : kUsual)
      for (size_t i = 0; i < columns.size(); ++i)
        if (columns[i].name == usual) return i;
    return columns.size() - 1;
  }
  std::vector<std::string_view> names;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == *wanted) return i;
    names.push_back(columns[i].name);
  }
  const std::optional<uint64_t> number = data::numberOf<uint64_t>(*wanted);
  if (number && *number >= 1 && *number <= columns.size()) return *number - 1;
  failTable(file, ErrorCode::kUsage,
            fmt::format("--target: there is no column '{}'{}", *wanted,
                        yaml::suggestion(*wanted, names)));
}

// Columns with their names, and the keys by which a job's file has them.
std::vector<ColumnProfile> namedColumns(const TableRecord& first, bool header) {
  std::vector<ColumnProfile> columns;
  for (size_t i = 0; i < first.size(); ++i) {
    ColumnProfile column;
    column.name = header ? first[i] : std::to_string(i + 1);
    column.key = isWritable(column.name) ? column.name : std::to_string(i + 1);
    columns.push_back(std::move(column));
  }
  return columns;
}

bool isNamedTwice(const std::vector<ColumnProfile>& columns, const ColumnProfile& column) {
  return std::count_if(columns.begin(), columns.end(), [&](const ColumnProfile& each) {
           return each.name == column.name || each.key == column.key;
         }) > 1;
}

// Counts the fields of all records, and which columns lack a number together.
// Borrows: the profile.
class TableScan {
 public:
  explicit TableScan(TableProfile& profile) : profile_(profile), facts_(profile.columns.size()) {}

  void read(const fs::path& file) {
    data::CsvRecords records(file, profile_.delimiter);
    if (profile_.header) records.next();
    while (records.next()) add(records);
    if (profile_.rows == 0)
      failTable(file, ErrorCode::kBadData, "there is no record behind the header");
  }

  void judge() {
    constexpr int kWordColumnsMax = 256;  // inputs of a model
    int of_words = 0;
    for (size_t i = 0; i < facts_.size(); ++i) {
      ColumnProfile& column = profile_.columns[i];
      if (i == profile_.target) continue;
      facts_[i].judgeFeature(column);
      of_words += column.use == Use::kWords;
      const bool is_twin = isNamedTwice(profile_.columns, column);
      if (!is_twin && (column.use != Use::kWords || of_words <= kWordColumnsMax)) continue;
      column.use = Use::kLeftOut;
      column.why = is_twin
                       ? "another column has this name"
                       : fmt::format("a model has {} columns of words at most", kWordColumnsMax);
    }
    ColumnProfile& target = profile_.columns[profile_.target];
    std::string wrong;
    profile_.learns_classes = facts_[profile_.target].judgeTarget(target, wrong);
    if (wrong.empty() && isNamedTwice(profile_.columns, target))
      wrong = "another column has this name: give it one of its own";
    if (!wrong.empty())
      failTable(profile_.file, ErrorCode::kBadData,
                fmt::format("column '{}' can't be learnt: {}{}", target.name, wrong,
                            profile_.target_was_guessed ? "; name another one with --target" : ""));
    keepMost();
  }

 private:
  void add(const data::CsvRecords& records) {
    ++profile_.rows;
    const bool broken = records.broken().has_value();
    if (broken || records.size() != facts_.size()) {
      if (profile_.first_left_out.empty())
        profile_.first_left_out = fmt::format(
            "{}: {}", records.where(0),
            broken ? "something follows a closing quote"
                   : fmt::format("{} fields, the others have {}", records.size(), facts_.size()));
      return;
    }
    gaps_.clear();
    for (size_t i = 0; i < facts_.size(); ++i) {
      const std::string_view field = data::trimmed(records.field(i));
      if (!facts_[i].add(field)) gaps_.push_back(static_cast<uint32_t>(i));
      if (i == profile_.target && isMissingField(field)) gaps_.push_back(kNoTarget);
    }
    ++patterns_[gaps_];
  }

  bool hasTarget(const std::vector<uint32_t>& gaps) const {
    const uint32_t lack =
        profile_.learns_classes ? kNoTarget : static_cast<uint32_t>(profile_.target);
    return std::find(gaps.begin(), gaps.end(), lack) == gaps.end();
  }

  // Columns that lack numbers are left out, those that lack the most first, while that keeps more
  // values: a record counts once it lacks none of the columns that are kept.
  void keepMost() {
    std::vector<size_t> lacking;
    int64_t kept = 0;
    for (size_t i = 0; i < facts_.size(); ++i) {
      const ColumnProfile& column = profile_.columns[i];
      kept += column.use == Use::kNumber || column.use == Use::kWords;
      if (column.use == Use::kNumber && column.missing > 0) lacking.push_back(i);
    }
    if (kept == 0)
      failTable(profile_.file, ErrorCode::kBadData,
                "no column is left for the model to learn from");
    std::stable_sort(lacking.begin(), lacking.end(), [this](size_t a, size_t b) {
      return profile_.columns[a].missing > profile_.columns[b].missing;
    });
    const std::vector<int64_t> complete = completeRecords(lacking);
    size_t best = 0;
    const auto values = [&](size_t dropped) {
      return complete[dropped] * (kept - static_cast<int64_t>(dropped));
    };
    for (size_t dropped = 1; dropped <= lacking.size(); ++dropped)
      if (values(dropped) > values(best)) best = dropped;
    for (size_t i = 0; i < best; ++i) {
      ColumnProfile& column = profile_.columns[lacking[i]];
      column.use = Use::kLeftOut;
      column.why = fmt::format("{} of {} records lack it", column.missing, profile_.rows);
    }
    profile_.rows_left_out = profile_.rows - complete[best];
    if (values(best) == 0)
      failTable(profile_.file, ErrorCode::kBadData, "each record lacks a value");
  }

  // How many records lack nothing once the first so many of `lacking` are left out.
  std::vector<int64_t> completeRecords(const std::vector<size_t>& lacking) const {
    std::map<uint32_t, size_t> place;
    for (size_t i = 0; i < lacking.size(); ++i) place[static_cast<uint32_t>(lacking[i])] = i + 1;
    std::vector<int64_t> complete(lacking.size() + 1);
    for (const auto& [gaps, records] : patterns_) {
      if (!hasTarget(gaps)) continue;
      size_t last = 0;
      for (const uint32_t gap : gaps)
        if (const auto found = place.find(gap); found != place.end())
          last = std::max(last, found->second);
      complete[last] += records;
    }
    for (size_t i = 1; i < complete.size(); ++i) complete[i] += complete[i - 1];
    DTF_CHECK(complete.back() <= profile_.rows);
    return complete;
  }

  static constexpr uint32_t kNoTarget = UINT32_MAX;

  TableProfile& profile_;
  std::vector<ColumnFacts> facts_;
  std::vector<uint32_t> gaps_;  // of the record that is read: columns without a number
  std::map<std::vector<uint32_t>, int64_t> patterns_;
};

}  // namespace

TableProfile profileTable(const fs::path& file, const std::optional<std::string>& target) {
  TableProfile profile;
  profile.file = file;
  profile.delimiter = findDelimiter(file);
  const std::vector<TableRecord> sample = sampleOf(file, profile.delimiter);
  profile.header = hasHeader(sample);
  profile.columns = namedColumns(sample[0], profile.header);
  if (profile.columns.size() < 2)
    failTable(file, ErrorCode::kBadData,
              "the text has one column. dtf trains on tables in text, arrays of NumPy and folders "
              "of images: of running text make a table with the class in one column and a word, or "
              "a count, in each of the others");
  profile.target = findTarget(file, profile.columns, target);
  profile.target_was_guessed = !target;
  TableScan scan(profile);
  scan.read(file);
  scan.judge();
  return profile;
}

}  // namespace dtf::launcher
