#include "common/data/csv_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/data/csv_numbers.h"
#include "common/data/growing_block.h"
#include "common/data/prepared_columns.h"

namespace dtf::data {

namespace {

std::vector<std::string> fieldsOf(const CsvRecords& records) {
  std::vector<std::string> fields;
  for (size_t i = 0; i < records.size(); ++i) fields.emplace_back(trimmed(records.field(i)));
  return fields;
}

// Errors: kBadData if each line of a header with line ends could be a record: a stray quote in the
// first line would lose them. Without a header the first record is read as any other.
void refuseJoinedHeader(const CsvRecords& records) {
  if (records.lines() == 1 || records.size() == 1) return;
  if (records.allLinesFit([](std::span<const std::string_view>) { return true; }))
    throw Error(ErrorCode::kBadData,
                fmt::format("{}: each of the {} lines of the header could be one; {}",
                            records.where(0), records.lines(), records.joinedText()));
}

// `records` is at the header. If the next two records have the same number of fields, and the
// header another, it is no header of theirs. A single broken record is reported when all are read.
// Errors: kBadData.
void checkHeaderFits(const std::string& file, CsvRecords& records) {
  const size_t names = records.size();
  if (!records.next()) return;
  const size_t fields = records.size();
  const std::string where = records.where(0);
  if (fields == names || !records.next() || records.size() != fields) return;
  throw Error(ErrorCode::kBadData,
              fmt::format("{}: the records have {} fields from here on, and the first line of {} "
                          "names {} columns: skip what comes before the table with skip_lines, or "
                          "remove it",
                          where, fields, file, names));
}

}  // namespace

std::vector<std::string> readNames(const std::string& file, const CsvRecords& records,
                                   const cluster::CsvSpec& spec) {
  std::vector<std::string> names = fieldsOf(records);
  if (spec.header) {
    refuseJoinedHeader(records);
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

namespace {

// Whether a record is "1 3:0.5 7:2": words between spaces, with ascending indices. Clock times in
// fields of their own are none.
bool isOfLibsvm(const CsvRecords& records, char delimiter) {
  size_t words = 0;  // the first one is the label
  std::optional<uint32_t> last;
  for (size_t i = 0; i < records.size(); ++i) {
    std::string_view rest = trimmed(records.field(i));
    while (!rest.empty()) {
      const std::string_view word = rest.substr(0, rest.find_first_of(" \t"));
      rest = trimmed(rest.substr(word.size()));
      if (++words == 1) {
        if (!numberOf<double>(word)) return false;
        continue;
      }
      if (!isIndexedValue(word)) return false;
      const auto index = numberOf<uint32_t>(word.substr(0, word.find(':')));
      if (last && *index <= *last) return false;
      last = index;
    }
  }
  return last && (delimiter == ' ' || words > records.size());
}

}  // namespace

void checkForm(const std::string& file, const CsvRecords& records, const cluster::CsvSpec& spec) {
  if (isOfLibsvm(records, spec.delimiter))
    throw Error(ErrorCode::kBadConfig,
                file +
                    ": this seems to be a libsvm file, of labels and values with their index: "
                    "set 'format: libsvm'");
  if (records.size() != 1) return;
  const std::string_view first = records.field(0);
  char likely = spec.delimiter;
  for (const char each : {',', ';', '\t', '|'})
    if (std::ranges::count(first, each) > std::ranges::count(first, likely)) likely = each;
  if (likely == spec.delimiter) return;
  const auto text = [](char delimiter) {
    return delimiter == '\t' ? std::string("a tab") : fmt::format("'{}'", delimiter);
  };
  throw Error(ErrorCode::kBadConfig,
              fmt::format("{}: the table seems to be divided by {}, the job's delimiter is {}: set "
                          "'delimiter', or divide the table by {}",
                          file, text(likely), text(spec.delimiter), text(spec.delimiter)));
}

namespace {

// Returns the number of features, with the indicators of missing values.
int64_t featureCount(const CsvColumns& columns, const cluster::CsvSpec& spec) {
  if (spec.numeric.empty()) return static_cast<int64_t>(columns.features.size());
  if (spec.learned) return preparedWidth(spec.learned->features);
  return preparedWidth(preparedColumns(featureNames(columns), spec.numeric));
}

}  // namespace

std::vector<std::string> featureNames(const CsvColumns& columns) {
  std::vector<std::string> names;
  for (const size_t column : columns.features) names.push_back(columns.names[column]);
  return names;
}

PartSpec featuresOf(const CsvColumns& columns, const cluster::CsvSpec& spec) {
  return {kFeatures, spec.whole_features ? DType::kInt32 : DType::kFloat32,
          Shape{featureCount(columns, spec)}};
}

PartSpec labelsOf(const CsvColumns& columns) {
  if (columns.label) return {kLabels, DType::kInt32, Shape()};
  return {kLabels, DType::kFloat32, Shape{static_cast<int64_t>(columns.targets.size())}};
}

std::vector<CategoryReader> categoryReaders(const cluster::CsvSpec& spec) {
  std::vector<CategoryReader> readers;
  const size_t resident_max = kResidentBytesMax / std::max<size_t>(spec.categorical.size(), 1);
  for (const cluster::CategoricalColumns& each : spec.categorical)
    readers.emplace_back(
        each, spec.no_features && readers.empty() ? kFeatures : each.name, resident_max,
        spec.learned ? &spec.learned->words.at(readers.size()) : nullptr, spec.decimal);
  return readers;
}

CsvHeader readCsvHeader(std::span<const std::filesystem::path> files,
                        const cluster::CsvSpec& spec) {
  DTF_CHECK(!files.empty());
  std::optional<CsvColumns> first;
  for (const std::filesystem::path& path : files) {
    CsvRecords records(path, spec);
    if (!records.next()) throw Error(ErrorCode::kBadData, path.string() + ": the file is empty");
    checkForm(path.string(), records, spec);
    CsvColumns columns =
        chooseColumns(path.string(), readNames(path.string(), records, spec), spec);
    checkHeader(path.string(), columns, spec);
    if (first && first->names != columns.names)
      throw Error(ErrorCode::kBadConfig,
                  path.string() + ": it has other columns than " + files[0].string());
    if (!first) first = std::move(columns);
    if (spec.header) checkHeaderFits(path.filename().string(), records);
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

std::vector<yaml::ErrorAt> missingColumns(std::span<const std::filesystem::path> files,
                                          const cluster::CsvSpec& spec) {
  for (const std::filesystem::path& path : files) {
    CsvRecords records(path, spec);
    if (!records.next()) throw Error(ErrorCode::kBadData, path.string() + ": the file is empty");
    const std::string file = path.string();
    checkForm(file, records, spec);
    std::vector<yaml::ErrorAt> missing = missingColumns(file, readNames(file, records, spec), spec);
    if (!missing.empty()) return missing;
  }
  return {};
}

}  // namespace dtf::data
