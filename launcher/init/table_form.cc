#include "launcher/init/table_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/data/byte_source.h"
#include "common/data/csv_fields.h"
#include "common/data/csv_numbers.h"
#include "common/data/csv_records.h"
#include "common/yaml/error_at.h"
#include "launcher/init/dataset_profile.h"

namespace dtf::launcher {

namespace {

namespace fs = std::filesystem;
using data::isMissingField;
using TableRecord = std::vector<std::string>;

constexpr size_t kSampleRecords = 200;
constexpr size_t kSampleBytesMax = size_t{32} << 20;  // beyond it no record is added
constexpr size_t kSkippedRecordsMax = 20;

struct Sample {
  std::vector<TableRecord> records;
  std::vector<int64_t> lines;  // where they begin
};

// The first records, as `delimiter` divides them.
Sample sampleOf(const fs::path& file, char delimiter) {
  data::CsvRecords records(file, delimiter);
  Sample sample;
  size_t bytes = 0;
  while (sample.records.size() < kSampleRecords && bytes < kSampleBytesMax && records.next()) {
    TableRecord record;
    sample.lines.push_back(records.line());
    for (size_t i = 0; i < records.size(); ++i) {
      record.emplace_back(data::trimmed(records.field(i)));
      bytes += sizeof(std::string) + record.back().size();
    }
    sample.records.push_back(std::move(record));
  }
  return sample;
}

// How a delimiter divides a sample.
struct Division {
  char delimiter = ',';
  size_t fields = 0;   // of most records; 0: there is none
  size_t skipped = 0;  // records before the first that has so many
  double alike = 0;    // the share of the others that have as many
  // Fields of a record, on average, that another delimiter doesn't divide; decimals do no harm.
  double undivided = 0;

  bool isBetterThan(const Division& other) const {
    return std::pair(undivided, -static_cast<double>(fields)) >
           std::pair(other.undivided, -static_cast<double>(other.fields));
  }
};
constexpr std::array<char, 4> kDelimiters = {',', ';', '\t', '|'};

bool isDivided(const std::string& field, char delimiter) {
  return std::ranges::any_of(kDelimiters,
                             [&](char each) {
                               return each != delimiter && field.find(each) != std::string::npos;
                             }) &&
         !data::decimalOf(field, ',');
}

// Whether the record names all columns but the first, as R writes tables with row names.
bool namesAllButFirst(const TableRecord& record, size_t fields) {
  return record.size() + 1 == fields && std::ranges::none_of(record, [](const std::string& field) {
           return data::decimalOf(field, '.') || data::decimalOf(field, ',');
         });
}

Division divisionOf(const Sample& sample, char delimiter) {
  if (sample.records.empty()) return {delimiter};
  std::map<size_t, size_t> counts;  // records, by their number of fields
  for (const TableRecord& record : sample.records) ++counts[record.size()];
  const auto most = std::ranges::max_element(
      counts, {}, [](const auto& each) { return std::pair(each.second, each.first); });
  Division division{delimiter, most->first};
  while (sample.records[division.skipped].size() != division.fields) ++division.skipped;
  // A title or two before the table; a table that begins late is none.
  if (division.skipped > kSkippedRecordsMax || division.skipped >= most->second ||
      namesAllButFirst(sample.records[0], division.fields)) {
    division.fields = sample.records[0].size();
    division.skipped = 0;
  }
  const auto records = static_cast<double>(sample.records.size() - division.skipped);
  division.alike = static_cast<double>(counts[division.fields]) / records;
  int64_t undivided = 0;
  for (size_t i = division.skipped; i < sample.records.size(); ++i)
    undivided += std::ranges::count_if(sample.records[i], [delimiter](const std::string& field) {
      return !isDivided(field, delimiter);
    });
  division.undivided = static_cast<double>(undivided) / records;
  return division;
}

// Whether the file begins with lines of words rather than with a table's.
bool looksLikeText(const fs::path& file) {
  constexpr size_t kBytesLookedAt = 65536;
  constexpr size_t kLineMin = 20;
  std::vector<uint8_t> bytes(kBytesLookedAt);
  bytes.resize(data::ByteSource(file).read(bytes.data(), bytes.size()));
  const auto lines =
      static_cast<size_t>(std::count(bytes.begin(), bytes.end(), static_cast<uint8_t>('\n'))) + 1;
  const auto letters = static_cast<size_t>(std::count_if(bytes.begin(), bytes.end(), [](uint8_t c) {
    return std::isalpha(c) != 0 || c == ' ' || c > 127;
  }));
  return bytes.size() >= kLineMin * lines && 5 * letters >= 4 * (bytes.size() - lines);
}

// Of a file that no delimiter divides; `wrong`: an error of one that was tried.
[[noreturn]] void failNoTable(const fs::path& file, const std::optional<Error>& wrong) {
  if (looksLikeText(file))
    failTable(
        file, ErrorCode::kBadData,
        fmt::format("this looks like running text, which dtf has no reader for: no delimiter "
                    "(',', ';', a tab, '|') divides its lines into the same number of fields. {}. "
                    "To learn from text, save it as an array of character codes: DATA.md, "
                    "\"Running text\", shows the few lines of Python",
                    kDataRead));
  if (wrong) throw Error(*wrong);
  failTable(
      file, ErrorCode::kBadData,
      "the text has one column, or lines that no delimiter (',', ';', a tab, '|') divides into "
      "the same number of fields: a table has a column to learn, and others to learn it from");
}

// Returns the delimiter that divides nearly all records, or else half of them, into the same number
// of fields, the most of all.
Division findDivision(const fs::path& file) {
  std::vector<Division> divisions;
  std::optional<Error> wrong;  // with the first delimiter that can't be
  for (const char delimiter : kDelimiters) {
    // A quote inside a field of another delimiter may open one of this, which nothing closes.
    try {
      divisions.push_back(divisionOf(sampleOf(file, delimiter), delimiter));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBadData) throw;
      if (!wrong) wrong = error;
    }
  }
  if (!divisions.empty() && divisions[0].fields == 0)
    failTable(file, ErrorCode::kBadData, "the file is empty");
  constexpr double kNearlyAll = 0.9, kMost = 0.5;
  for (const double share : {kNearlyAll, kMost}) {
    const Division* best = nullptr;
    for (const Division& each : divisions)
      if (each.alike >= share && each.fields > 1 && (best == nullptr || each.isBetterThan(*best)))
        best = &each;
    if (best == nullptr) continue;
    if (share < kNearlyAll && looksLikeText(file)) break;  // commas of some sentences
    return *best;
  }
  failNoTable(file, wrong);
}

// "1,234": the comma may divide thousands.
bool mayHaveThousands(const std::string& field) {
  const size_t comma = field.find(',');
  return comma != std::string::npos && field.size() == comma + 4;
}

// Returns what divides a number's decimals: a comma if fields of the sample are numbers with one,
// and none is a number with a point. Three digits behind each comma leave it open.
char findDecimal(const std::vector<TableRecord>& sample, char delimiter) {
  if (delimiter == ',') return '.';
  bool has_comma = false;
  for (const TableRecord& record : sample)
    for (const std::string& field : record) {
      const bool divides = field.find_first_of(".,") != std::string::npos;
      if (divides && data::decimalOf(field, '.')) return '.';
      has_comma = has_comma || (divides && data::decimalOf(field, ',') && !mayHaveThousands(field));
    }
  return has_comma ? ',' : '.';
}

// Whether the first record names the columns: a word above numbers, or one that is not among the
// words below it. A number above numbers is a value.
bool hasHeader(const std::vector<TableRecord>& sample, char decimal) {
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
      numbers += data::decimalOf(sample[row][column], decimal).has_value();
      words.insert(sample[row][column]);
    }
    const bool is_number = data::decimalOf(first[column], decimal).has_value();
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

}  // namespace

void failTable(const fs::path& file, ErrorCode code, const std::string& why) {
  throw yaml::ErrorAt(code, {printable(file.string()), 1, 1}, printable(why));
}

TableForm findTableForm(const fs::path& file) {
  const Division division = findDivision(file);
  Sample sample = sampleOf(file, division.delimiter);
  DTF_CHECK(division.skipped < sample.records.size());
  const int64_t first_line = sample.lines[division.skipped];
  sample.records.erase(sample.records.begin(),
                       sample.records.begin() + static_cast<std::ptrdiff_t>(division.skipped));
  if (sample.records[0].size() < 2) failNoTable(file, {});
  TableForm form{.delimiter = division.delimiter,
                 .decimal = findDecimal(sample.records, division.delimiter)};
  form.header = hasHeader(sample.records, form.decimal);
  if (division.skipped > 0) form.skip_lines = first_line - 1;
  form.first_record = std::move(sample.records[0]);
  return form;
}

}  // namespace dtf::launcher
