#include "common/cluster/read_table.h"

#include <fmt/format.h>

#include <cctype>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "common/cluster/schema.h"
#include "common/model/numbers.h"
#include "common/yaml/keys.h"

namespace dtf::cluster {

using yaml::inQuotes;
using yaml::MapReader;
using yaml::Mark;
using yaml::Report;
using yaml::YamlNode;

namespace {

constexpr size_t kNumericMax = 4096;
constexpr std::string_view kLearnedFills[] = {"mean", "median"};

using Marks = std::map<std::string, Mark>;

// `marks`: gets the place of each word.
std::vector<std::string> readWords(const MapReader& reader, std::string_view key, Report& report,
                                   std::string_view instead = "leave it out, or ",
                                   Marks* marks = nullptr) {
  std::vector<std::string> words;
  for (const YamlNode& node : reader.list(key)) {
    std::optional<std::string> word = yaml::readText(node, key, report);
    if (!word) continue;
    if (marks != nullptr) marks->emplace(*word, report.markOf(node.place));
    words.push_back(std::move(*word));
  }
  const YamlNode* list = reader.find(key);
  if (list != nullptr && list->isSequence() && list->children.empty())
    report.error(list->where(),
                 inQuotes(key) + " is empty: " + std::string(instead) + "name at least one");
  return words;
}

// Categories name placeholders of the model's graph.
bool isInputName(std::string_view name) {
  constexpr size_t kNameBytesMax = 128;
  return !name.empty() && name.size() <= kNameBytesMax &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; });
}

// Reads `vocabulary: {from: data, max_size: 1000, min_count: 2}`.
void readVocabulary(const YamlNode& node, CategoricalColumns& read, Report& report) {
  constexpr int64_t kDefaultMaxSize = 10'000;
  const MapReader reader(node, schema::kVocabulary, "vocabulary", report);
  std::string from;
  reader.word("from", from);
  read.learned_max_size = kDefaultMaxSize;
  reader.whole("max_size", read.learned_max_size);
  reader.whole("min_count", read.learned_min_count);
}

// Reads `fill`: mean, median, or a number.
void readFill(const MapReader& reader, NumericColumn& column, Report& report) {
  std::string fill;
  if (!reader.text("fill", fill)) return;
  const YamlNode& node = *reader.find("fill");
  using Fill = NumericColumn::Fill;
  column.fill = fill == "mean" ? Fill::kMean : fill == "median" ? Fill::kMedian : Fill::kValue;
  if (column.fill != Fill::kValue) return;
  constexpr yaml::Key kFill = yaml::number("fill", {-1e30, 1e30, false, false}, "");
  const std::string_view begin = "+-.0123456789";
  if (fill.empty() || begin.find(fill[0]) == std::string_view::npos)
    return report.error(node.where(), "'fill' is mean, median or a number, got " + inQuotes(fill) +
                                          yaml::suggestion(fill, kLearnedFills));
  if (const auto value = yaml::readNumber(node, kFill, report)) column.fill_value = *value;
}

NumericColumn readNumeric(const YamlNode& node, Marks& column_marks, Report& report) {
  const MapReader reader(node, schema::kNumeric, node.key, report);
  NumericColumn column;
  column.column = node.key;
  column.mark = report.markOf(node.key_place);
  column_marks.emplace(node.key, column.mark);
  readFill(reader, column, report);
  reader.boolean("missing_indicator", column.missing_indicator);
  reader.boolean("log1p", column.log1p);
  reader.boolean("standardize", column.standardize);
  if (column.log1p && column.fill == NumericColumn::Fill::kValue && column.fill_value <= -1)
    report.error(reader.find("fill")->where(),
                 "'log1p' is log(1 + x), and needs a 'fill' above -1");
  if (column.missing_indicator && column.fill == NumericColumn::Fill::kNone)
    report.error(reader.find("missing_indicator")->key_place,
                 "'missing_indicator' needs a 'fill': without it a record that lacks the value "
                 "can't be read");
  return column;
}

// The features' preparation.
std::vector<NumericColumn> readNumericColumns(const MapReader& reader, Marks& column_marks,
                                              Report& report) {
  std::vector<NumericColumn> columns;
  const YamlNode* const map = reader.find("numeric_columns");
  if (map == nullptr || !map->isMap()) return columns;
  if (map->children.empty() || map->children.size() > kNumericMax)
    report.error(map->key_place, fmt::format("'numeric_columns' has from 1 to {} columns, got {}",
                                             kNumericMax, map->children.size()));
  for (const YamlNode& node : map->children)
    columns.push_back(readNumeric(node, column_marks, report));
  std::ranges::sort(columns, {}, &NumericColumn::column);
  return columns;
}

// Reads a key of one character.
void readCharacter(const MapReader& reader, std::string_view key, std::string_view not_allowed,
                   std::string_view expected, char& value, Report& report) {
  std::string text(1, value);
  if (!reader.text(key, text)) return;
  if (text == "\\t" || text == "tab") text = "\t";
  if (text.size() == 1 && not_allowed.find(text[0]) == std::string_view::npos)
    value = text[0];
  else
    report.error(reader.find(key)->where(), inQuotes(key) + " is " + std::string(expected));
}

// Reads the bounds of buckets, which ascend.
void readBuckets(const MapReader& reader, CategoricalColumns& read, Report& report) {
  constexpr size_t kBoundsMax = 4096;
  constexpr yaml::Key kBound = yaml::number("buckets", {-1e30, 1e30, false, false}, "");
  const YamlNode* const list = reader.find("buckets");
  if (list == nullptr) return;
  const size_t mistakes_before = report.mistakes();
  read.buckets = model::readNumbers(reader, kBound, kBoundsMax);
  if (report.mistakes() == mistakes_before &&
      std::ranges::adjacent_find(read.buckets, std::greater_equal<>()) != read.buckets.end())
    report.error(list->where(), "the bounds of 'buckets' ascend: [18, 30, 65]");
}

// Reads `split` and `max_words`.
void readSplitWords(const MapReader& reader, CategoricalColumns& read, Report& report) {
  const YamlNode* const split = reader.find("split");
  const YamlNode* const max_words = reader.find("max_words");
  readCharacter(reader, "split", "\"\n", "one character such as '|' or ';'", read.split, report);
  reader.whole("max_words", read.max_words);
  if (max_words != nullptr && split == nullptr)
    report.error(max_words->key_place,
                 "'max_words' is for fields of several words: set 'split' to what divides them");
  const bool has_words =
      read.hash_bucket_size > 0 || !read.vocabulary_list.empty() || read.learned_max_size > 0;
  if (split != nullptr && !has_words)
    report.error(split->key_place,
                 "'split' divides a field into words, and needs a key that makes them numbers: "
                 "'vocabulary', 'vocabulary_list' or 'hash_bucket_size'");
}

CategoricalColumns readCategory(const YamlNode& node, Marks& column_marks, Report& report) {
  const MapReader reader(node, schema::kCategorical, node.key, report);
  CategoricalColumns read;
  read.name = node.key;
  read.mark = report.markOf(node.key_place);
  checkInputName(node, report);
  read.columns = readWords(reader, "columns", report, "", &column_marks);
  reader.whole("hash_bucket_size", read.hash_bucket_size);
  read.vocabulary_list = readWords(reader, "vocabulary_list", report);
  reader.whole("num_oov_buckets", read.num_oov_buckets);
  const YamlNode* const words = reader.find("vocabulary_list");
  std::set<std::string_view> known;
  for (const std::string& word : read.vocabulary_list)
    if (!known.insert(word).second) {
      report.error(words->where(), "the word " + inQuotes(word) + " is listed twice");
      break;
    }
  const YamlNode* const learned = reader.find("vocabulary");
  readBuckets(reader, read, report);
  const YamlNode* const buckets = reader.find("buckets");
  if (buckets != nullptr && (words != nullptr || learned != nullptr || read.hash_bucket_size > 0))
    report.error(buckets->key_place,
                 "'buckets' are of numbers, and exclude the keys for words: 'hash_bucket_size', "
                 "'vocabulary_list' and 'vocabulary'");
  if (buckets != nullptr && read.num_oov_buckets > 1)
    report.error(reader.find("num_oov_buckets")->where(),
                 "with 'buckets' there is 1 of 'num_oov_buckets', for a missing value");
  if (words != nullptr && read.hash_bucket_size > 0)
    report.error(words->key_place, "'hash_bucket_size' and 'vocabulary_list' exclude each other");
  if (learned != nullptr && (words != nullptr || read.hash_bucket_size > 0))
    report.error(learned->key_place,
                 "'vocabulary' excludes 'vocabulary_list' and 'hash_bucket_size'");
  if (learned != nullptr) readVocabulary(*learned, read, report);
  if (learned != nullptr && reader.find("num_oov_buckets") == nullptr) read.num_oov_buckets = 1;
  if (words == nullptr && learned == nullptr && buckets == nullptr && read.num_oov_buckets > 0)
    report.error(reader.find("num_oov_buckets")->key_place,
                 "'num_oov_buckets' needs a 'vocabulary_list': it is for words not in that list");
  readSplitWords(reader, read, report);
  return read;
}

}  // namespace

void checkInputName(const YamlNode& node, Report& report) {
  if (node.key == "features" || node.key == "labels")
    report.error(node.key_place, "the model has an input " + inQuotes(node.key) +
                                     " already: give the categories another name");
  if (!isInputName(node.key))
    report.error(node.key_place,
                 "the name of categories has letters, digits, '_' and '-', and at most 128 "
                 "characters, got " +
                     inQuotes(node.key));
}

ClassNames readClassNames(const MapReader& reader, Report& report) {
  const YamlNode* const node = reader.find("class_names");
  if (node != nullptr && node->isMap()) {
    const MapReader settings(*node, schema::kClassNames, "class_names", report);
    std::string from;
    settings.word("from", from);
    return {{}, true};
  }
  ClassNames classes{readWords(reader, "class_names", report), false};
  std::set<std::string_view> known;
  for (const std::string& name : classes.names)
    if (!known.insert(name).second) {
      report.error(node->where(), "two classes are named " + inQuotes(name));
      break;
    }
  return classes;
}

void readCsv(const MapReader& reader, CsvSpec& csv, Report& report) {
  std::string decimal;
  csv.header_is_said = reader.boolean("header", csv.header);
  readCharacter(reader, "delimiter", "\"\n.", "one character such as ',' or ';', or tab",
                csv.delimiter, report);
  readCharacter(reader, "comment", std::string("\"\n\t") + csv.delimiter,
                "one character such as '#', and not the delimiter", csv.comment, report);
  reader.whole("skip_lines", csv.skip_lines);
  if (reader.word("decimal", decimal)) csv.decimal = decimal == "comma" ? ',' : '.';
  if (csv.decimal == ',' && csv.delimiter == ',')
    report.error(reader.find("decimal")->where(),
                 "a comma can't be both in the numbers and between the fields: set 'delimiter', "
                 "often ';' in such tables");
  if (reader.text("label_column", csv.label))
    csv.column_marks.emplace(csv.label, report.markOf(reader.find("label_column")->place));
  const auto columns = [&](std::string_view key) {
    return readWords(reader, key, report, "leave it out, or ", &csv.column_marks);
  };
  csv.targets = columns("target_columns");
  csv.categorical = readCategories(
      reader, "categorical_columns", report,
      [&](const YamlNode& each) { return readCategory(each, csv.column_marks, report); });
  const YamlNode* const features = reader.find("feature_columns");
  csv.no_features = features != nullptr && features->isSequence() && features->children.empty() &&
                    !csv.categorical.empty();
  if (!csv.no_features) csv.features = columns("feature_columns");
  csv.numeric = readNumericColumns(reader, csv.column_marks, report);
  if (csv.no_features && !csv.numeric.empty())
    report.error(reader.find("numeric_columns")->key_place,
                 "'numeric_columns' prepares features, and 'feature_columns: []' reads none");
  ClassNames classes = readClassNames(reader, report);
  csv.class_names = std::move(classes.names);
  csv.learns_classes = classes.are_learned;
  if (csv.learns_classes && csv.label.empty())
    report.error(reader.find("class_names")->key_place,
                 "'class_names' are the words of a 'label_column', which the table lacks here");
  reader.whole("max_bad_records", csv.max_bad_records);
}

}  // namespace dtf::cluster
