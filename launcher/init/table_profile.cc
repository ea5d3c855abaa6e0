#include "launcher/init/table_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/data/csv_numbers.h"
#include "common/data/csv_records.h"
#include "common/yaml/key_table.h"
#include "launcher/init/column_facts.h"
#include "launcher/init/table_form.h"
#include "launcher/init/yaml_text.h"

namespace dtf::launcher {

namespace {

namespace fs = std::filesystem;
using Use = ColumnProfile::Use;

constexpr size_t kColumnsMax = 50'000;
constexpr size_t kListedBytesMax = size_t{256} << 10;  // of words in a job's file

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
std::vector<ColumnProfile> namedColumns(const std::vector<std::string>& first, bool header) {
  std::vector<ColumnProfile> columns;
  for (size_t i = 0; i < first.size(); ++i) {
    ColumnProfile column;
    column.name = header ? first[i] : std::to_string(i + 1);
    column.key = isWritable(column.name) ? column.name : std::to_string(i + 1);
    columns.push_back(std::move(column));
  }
  return columns;
}

// The names and keys that several columns have.
std::set<std::string> sharedNames(const std::vector<ColumnProfile>& columns) {
  std::set<std::string> names, shared;
  for (const ColumnProfile& column : columns) {
    if (!names.insert(column.name).second) shared.insert(column.name);
    if (column.key != column.name && !names.insert(column.key).second) shared.insert(column.key);
  }
  return shared;
}

// Counts the fields of all records, and the records that lack a number. What it keeps is bounded:
// the words of all columns by `word_bytes_max`, the samples by kTableWordBytesMax.
// Borrows: the profile.
class TableScan {
 public:
  TableScan(TableProfile& profile, size_t word_bytes_max)
      : profile_(profile),
        word_bytes_max_(word_bytes_max),
        facts_(profile.columns.size(),
               ColumnFacts(sampleMaxOf(profile.columns.size()), profile.form.decimal)) {}

  void read() {
    data::CsvRecords records(profile_.file, profile_.form.delimiter, 0, profile_.form.skip_lines);
    if (profile_.form.header) records.next();
    while (records.next()) add(records);
    if (profile_.rows == 0)
      failTable(profile_.file, ErrorCode::kBadData, "there is no record behind the header");
  }

  void judge() {
    constexpr int kWordColumnsMax = 256;  // inputs of a model
    int of_words = 0;
    size_t listed_bytes = 0;
    const std::set<std::string> shared = sharedNames(profile_.columns);
    const auto is_shared = [&shared](const ColumnProfile& column) {
      return shared.contains(column.name) || shared.contains(column.key);
    };
    const bool dates_alone = areDatesAlone();
    for (size_t i = 0; i < facts_.size(); ++i) {
      ColumnProfile& column = profile_.columns[i];
      if (i == profile_.target) continue;
      facts_[i].judgeFeature(column, dates_alone);
      of_words += column.use == Use::kWords;
      for (const auto& [word, records] : column.words) listed_bytes += word.size();
      if (listed_bytes > kListedBytesMax) column.words.clear();  // hashed
      const bool is_twin = is_shared(column);
      if (!is_twin && (column.use != Use::kWords || of_words <= kWordColumnsMax)) continue;
      column.use = Use::kLeftOut;
      column.why = is_twin
                       ? "another column has this name"
                       : fmt::format("a model has {} columns of words at most", kWordColumnsMax);
    }
    ColumnProfile& target = profile_.columns[profile_.target];
    std::string wrong;
    profile_.learns_classes = facts_[profile_.target].judgeTarget(target, wrong);
    if (wrong.empty() && is_shared(target))
      wrong = "another column has this name: give it one of its own";
    if (!wrong.empty())
      failTable(profile_.file, ErrorCode::kBadData,
                fmt::format("column '{}' can't be learnt: {}{}", target.name, wrong,
                            profile_.target_was_guessed ? "; name another one with --target" : ""));
    for (const auto& [word, records] : target.words) classes_.insert(word);
    keepMost();
  }

 private:
  bool isMalformed(const data::CsvRecords& records) const {
    return records.broken().has_value() || records.size() != facts_.size() || joinsRecords(records);
  }

  // Whether a stray quote may have joined several records, as the reader of the job judges it.
  // Before the columns are judged, any field may be one of a record.
  bool joinsRecords(const data::CsvRecords& records) const {
    return records.lines() > 1 &&
           records.allLinesFit([this](std::span<const std::string_view> fields) {
             for (size_t i = 0; i < fields.size(); ++i) {
               const std::string_view field = data::trimmed(fields[i]);
               const Use use = profile_.columns[i].use;
               if (use == Use::kTarget && !isTarget(field)) return false;
               // The reader refuses a gap, unless the column is left out in the end.
               if (use == Use::kNumber && !isMissingField(field) && !numberIn(field)) return false;
             }
             return true;
           });
  }

  void add(const data::CsvRecords& records) {
    ++profile_.rows;
    if (isMalformed(records)) {
      ++malformed_;
      if (profile_.first_left_out.empty())
        profile_.first_left_out = fmt::format(
            "{}: {}", records.where(0),
            records.broken().has_value() ? "something follows a closing quote"
            : records.size() != facts_.size()
                ? fmt::format("{} fields, the others have {}", records.size(), facts_.size())
                : fmt::format("each of its {} lines could be a record; {}", records.lines(),
                              records.joinedText()));
      return;
    }
    for (size_t i = 0; i < facts_.size(); ++i) {
      word_bytes_ -= facts_[i].wordBytes();
      facts_[i].add(data::trimmed(records.field(i)));
      word_bytes_ += facts_[i].wordBytes();
    }
    if (word_bytes_ > word_bytes_max_) forgetMost();
  }

  // The column that keeps the most forgets its words, until half is left: so it is asked seldom.
  void forgetMost() {
    while (word_bytes_ > word_bytes_max_ / 2) {
      ColumnFacts& most = *std::ranges::max_element(facts_, {}, &ColumnFacts::wordBytes);
      word_bytes_ -= most.wordBytes();
      most.forgetWords();
    }
  }

  // Whether a model can learn from dates or from nothing: then their words are better.
  bool areDatesAlone() const {
    for (size_t i = 0; i < facts_.size(); ++i) {
      ColumnProfile column = profile_.columns[i];
      if (i == profile_.target) continue;
      facts_[i].judgeFeature(column);
      if (column.use != Use::kLeftOut) return false;
    }
    return true;
  }

  bool isTarget(std::string_view field) const {
    return profile_.learns_classes ? classes_.contains(field) : numberIn(field).has_value();
  }

  std::optional<double> numberIn(std::string_view field) const {
    return numberOfField(field, profile_.form.decimal);
  }

  // Gaps are filled by their columns' names, but not where most of a column is missing.
  void chooseFills() {
    constexpr int kFilledMax = 1000;
    int filled = 0;
    for (ColumnProfile& column : profile_.columns) {
      const bool has_gaps = column.use == Use::kNumber && column.missing > column.odd_fields;
      const bool is_named = column.key == column.name && column.name != "*";
      column.fills =
          has_gaps && is_named && 2 * column.missing <= profile_.rows && ++filled <= kFilledMax;
    }
  }

  // The number of records that lack a number of the column.
  static int64_t lackedBy(const ColumnProfile& column) {
    return column.fills ? column.odd_fields : column.missing;
  }

  bool hasNumber(const data::CsvRecords& records, size_t column) const {
    DTF_CHECK(column < profile_.columns.size());
    const std::string_view field = data::trimmed(records.field(column));
    return numberIn(field).has_value() || (profile_.columns[column].fills && isMissingField(field));
  }

  // Columns that lack numbers are left out, those that lack the most first, while that keeps more
  // values: a record counts once it lacks none of the columns that are kept.
  void keepMost() {
    chooseFills();
    std::vector<size_t> lacking;
    int64_t kept = 0;
    for (size_t i = 0; i < facts_.size(); ++i) {
      const ColumnProfile& column = profile_.columns[i];
      kept += column.use == Use::kNumber || column.use == Use::kWords;
      if (column.use == Use::kNumber && lackedBy(column) > 0) lacking.push_back(i);
    }
    if (kept == 0)
      failTable(profile_.file, ErrorCode::kBadData,
                "no column is left for the model to learn from");
    std::stable_sort(lacking.begin(), lacking.end(), [this](size_t a, size_t b) {
      return lackedBy(profile_.columns[a]) > lackedBy(profile_.columns[b]);
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
      column.why = fmt::format("{} of {} records lack it", lackedBy(column), profile_.rows);
    }
    profile_.rows_left_out = profile_.rows - complete[best];
    if (values(best) == 0)
      failTable(profile_.file, ErrorCode::kBadData, "each record lacks a value");
  }

  // How many records lack nothing once the first so many of `lacking` are left out. The table is
  // read again: which columns lack a number together may differ from record to record.
  std::vector<int64_t> completeRecords(const std::vector<size_t>& lacking) const {
    std::vector<int64_t> complete(lacking.size() + 1);
    if (lacking.empty() && malformed_ == 0 && profile_.columns[profile_.target].missing == 0)
      return {profile_.rows};
    data::CsvRecords records(profile_.file, profile_.form.delimiter, 0, profile_.form.skip_lines);
    if (profile_.form.header) records.next();
    for (int64_t row = 0; row < profile_.rows && records.next(); ++row) {
      if (isMalformed(records) || !isTarget(data::trimmed(records.field(profile_.target))))
        continue;
      size_t last = lacking.size();
      while (last > 0 && hasNumber(records, lacking[last - 1])) --last;
      ++complete[last];
    }
    for (size_t i = 1; i < complete.size(); ++i) complete[i] += complete[i - 1];
    DTF_CHECK(complete.back() <= profile_.rows);
    return complete;
  }

  TableProfile& profile_;
  const size_t word_bytes_max_;
  std::vector<ColumnFacts> facts_;
  size_t word_bytes_ = 0;  // of all columns
  int64_t malformed_ = 0;
  std::set<std::string, std::less<>> classes_;
};

}  // namespace

size_t sampleMaxOf(size_t columns) {
  DTF_CHECK(columns > 0);
  return std::min(DistinctWords::kSampleMax,
                  kTableWordBytesMax / DistinctWords::kChecksumCost / columns);
}

TableProfile profileTable(const fs::path& file, const std::optional<std::string>& target,
                          size_t word_bytes_max) {
  TableProfile profile;
  profile.file = file;
  profile.form = findTableForm(file);
  profile.columns = namedColumns(profile.form.first_record, profile.form.header);
  if (profile.columns.size() > kColumnsMax)
    failTable(file, ErrorCode::kBadData,
              fmt::format("{} columns are more than the {} that init looks at: save the numbers as "
                          "an array of NumPy (.npy)",
                          profile.columns.size(), kColumnsMax));
  profile.target = findTarget(file, profile.columns, target);
  profile.target_was_guessed = !target;
  TableScan scan(profile, word_bytes_max);
  scan.read();
  scan.judge();
  return profile;
}

}  // namespace dtf::launcher
