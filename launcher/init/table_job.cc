#include "launcher/init/table_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/text.h"
#include "common/data/data_signature.h"
#include "launcher/init/column_facts.h"
#include "launcher/init/yaml_text.h"

namespace dtf::launcher {

namespace {

using ColumnUse = ColumnProfile::Use;

constexpr size_t kColumnsShown = 40;  // by name
constexpr size_t kWordsShown = 8;

std::string shortName(const std::string& name) {
  constexpr size_t kNameShown = 32;
  const std::string shown = data::asUtf8(printable(name));
  if (shown.size() <= kNameShown) return shown;
  size_t end = kNameShown - 3;
  while (end > 0 && (static_cast<unsigned char>(shown[end]) & 0xC0) == 0x80) --end;
  return shown.substr(0, end) + "...";
}

std::string wordsText(const std::vector<WordCount>& words) {
  std::string text;
  for (size_t i = 0; i < std::min(words.size(), kWordsShown); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", shortName(words[i].first), words[i].second);
  if (words.size() > kWordsShown) text += fmt::format(" and {} more", words.size() - kWordsShown);
  return text;
}

std::string missingText(const ColumnProfile& column) {
  std::string text = column.missing > 0 ? fmt::format(", {} missing", column.missing) : "";
  if (!column.odd.empty()) text += fmt::format(" (as '{}')", shortName(column.odd));
  return text;
}

std::string distinctText(const ColumnProfile& column) {
  return fmt::format("{}{} {}", column.many ? "about " : "", column.distinct,
                     column.dates ? "dates, read as words" : "words");
}

std::string useText(const TableProfile& table, const ColumnProfile& column) {
  switch (column.use) {
    case ColumnUse::kTarget:
      if (table.learns_classes)
        return fmt::format("learnt: {} classes: {}{}", column.words.size(), wordsText(column.words),
                           missingText(column));
      return fmt::format("learnt: numbers of mean {} and deviation {}{}", yamlNumber(column.mean),
                         yamlNumber(column.deviation), missingText(column));
    case ColumnUse::kNumber:
      return "numbers" + missingText(column) + (column.fills ? ": filled with the median" : "");
    case ColumnUse::kWords:
      return distinctText(column) + missingText(column);
    case ColumnUse::kLeftOut:
      return "left out: " + column.why;
  }
  return "";
}

std::string delimiterText(char delimiter) {
  return delimiter == '\t' ? "a tab" : fmt::format("'{}'", delimiter);
}

std::vector<std::string> tableFindings(const TableProfile& table) {
  std::vector<std::string> lines = {
      fmt::format("{}: {} of {}, divided by {}, {} header{}", table.file.filename().string(),
                  amountText(static_cast<uint64_t>(table.rows), "record"),
                  amountText(table.columns.size(), "column"), delimiterText(table.form.delimiter),
                  table.form.header ? "with a" : "without a",
                  table.form.decimal == ',' ? ", with decimal commas" : "")};
  if (table.form.skip_lines > 0)
    lines.push_back(fmt::format("{} before the table: skipped",
                                amountText(static_cast<uint64_t>(table.form.skip_lines), "line")));
  size_t width = 0, plain = 0, left_out = 0;
  for (const ColumnProfile& column : table.columns)
    width = std::max(width, shortName(column.name).size());
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const ColumnProfile& column = table.columns[i];
    const bool is_plain = column.use == ColumnUse::kNumber && column.missing == 0;
    if (is_plain && ++plain > kColumnsShown) continue;
    if (column.use == ColumnUse::kLeftOut && ++left_out > kColumnsShown) continue;
    lines.push_back(
        fmt::format("  {:<{}}  {}", shortName(column.name), width, useText(table, column)));
  }
  if (plain > kColumnsShown)
    lines.push_back(fmt::format("  and {} more columns of numbers", plain - kColumnsShown));
  if (left_out > kColumnsShown)
    lines.push_back(fmt::format("  and {} more are left out", left_out - kColumnsShown));
  if (table.target_was_guessed)
    lines.push_back(fmt::format("'{}' is learnt, as --target names no other column",
                                shortName(table.columns[table.target].name)));
  if (table.rows_left_out > 0)
    lines.push_back(fmt::format(
        "{} of {} records are left out: they lack a value{}", table.rows_left_out, table.rows,
        table.first_left_out.empty() ? ""
                                     : " or are malformed, the first at " + table.first_left_out));
  return lines;
}

// A column of words with its place in the model.
struct CategoryPlan {
  const ColumnProfile* column;
  std::string name;
  int64_t rows;  // of its table
  int64_t dimension;
};

// Twice as many rows as words, as two words may share one, as far as the table stays small.
int64_t hashBuckets(const ColumnProfile& column) {
  DTF_CHECK(column.distinct > 0);
  for (const int64_t buckets : {100, 200, 500, 1000, 2000, 5000, 10'000, 20'000, 50'000})
    if (buckets >= 2 * column.distinct) return buckets;
  return 100'000;
}

// In order of name, as the data have them.
std::vector<CategoryPlan> categoriesOf(const TableProfile& table) {
  std::set<std::string> taken = {"features", "labels", "numbers", "hidden",  "hidden_1",
                                 "hidden_2", "output", "scale",   "together"};
  std::vector<CategoryPlan> plans;
  for (const ColumnProfile& column : table.columns) {
    if (column.use != ColumnUse::kWords) continue;
    std::string name = plainName(column.name, "words");
    if (!taken.insert(name).second) {
      int number = 2;
      while (taken.contains(fmt::format("{}_{}", name, number))) ++number;
      name = fmt::format("{}_{}", name, number);
      taken.insert(name);
    }
    const int64_t rows = column.learns_words    ? column.distinct + 1
                         : column.words.empty() ? hashBuckets(column)
                                                : static_cast<int64_t>(column.words.size()) + 1;
    const double root = std::ceil(std::sqrt(static_cast<double>(rows)));
    plans.push_back({&column, name, rows, std::clamp<int64_t>(std::llround(root), 2, 16)});
  }
  std::ranges::sort(plans, {}, &CategoryPlan::name);
  return plans;
}

std::vector<const ColumnProfile*> numbersOf(const TableProfile& table) {
  std::vector<const ColumnProfile*> numbers;
  for (const ColumnProfile& column : table.columns)
    if (column.use == ColumnUse::kNumber) numbers.push_back(&column);
  return numbers;
}

// The columns that tell the model where a number was missing.
int64_t filledColumns(const std::vector<const ColumnProfile*>& numbers) {
  return std::ranges::count_if(numbers, [](const ColumnProfile* each) { return each->fills; });
}

void addModel(JobDraft& draft, const TableProfile& table,
              const std::vector<const ColumnProfile*>& numbers,
              const std::vector<CategoryPlan>& categories) {
  if (numbers.empty())
    draft.model.emplace_back(
        "input: {shape: [1]}   # the first column of words, as none is of numbers");
  else
    draft.model.push_back(
        fmt::format("input: {{shape: [{}]}}   # the numbers of a record{}",
                    static_cast<int64_t>(numbers.size()) + filledColumns(numbers),
                    filledColumns(numbers) > 0 ? ", and where one was missing" : ""));
  draft.model.emplace_back("layers:");
  if (!numbers.empty() && !categories.empty())
    draft.model.emplace_back("  - flatten: {name: numbers}   # a name for them");
  for (const CategoryPlan& each : categories)
    draft.model.push_back(fmt::format(
        "  - embedding: {{categories: {0}, input_dim: {1}, output_dim: {2}, combiner: sum, "
        "name: {0}}}",
        yamlText(each.name), each.rows, each.dimension));
  // The last embedding is the layer before.
  std::vector<std::string> joined;
  if (!numbers.empty() && !categories.empty()) joined.emplace_back("numbers");
  for (size_t i = 0; i + 1 < categories.size(); ++i) joined.push_back(yamlText(categories[i].name));
  if (!joined.empty())
    for (const std::string& line :
         split(yamlList("- concatenate: {with", joined, 0) + ", name: together}", '\n'))
      draft.model.push_back("  " + line);
  addHiddenLayers(draft);
  const ColumnProfile& target = table.columns[table.target];
  if (table.learns_classes)
    addOutput(draft, {.classes = static_cast<int64_t>(target.words.size())});
  else
    addOutput(draft, {.mean = target.mean, .deviation = target.deviation});
}

void addLines(std::vector<std::string>& to, const std::string& text) {
  for (const std::string& line : split(text, '\n')) to.push_back(line);
}

// Rare words teach the row of all other words, where most words are more frequent.
std::string vocabularyText(const ColumnProfile& column, int64_t records) {
  constexpr int64_t kOftenEnough = 3;
  DTF_CHECK(column.distinct > 0 && records >= 0);
  const bool leaves_rare_out = records >= kOftenEnough * column.distinct;
  return fmt::format("      vocabulary: {{from: data, max_size: {}{}}}   # {}; others share a row",
                     column.distinct, leaves_rare_out ? ", min_count: 2" : "",
                     distinctText(column));
}

void addNumeric(std::vector<std::string>& data, const std::vector<const ColumnProfile*>& numbers) {
  if (numbers.empty()) return;
  DTF_CHECK(!data.empty());
  data.emplace_back("  numeric_columns:   # (x - mean) / deviation, of the records to train on");
  data.emplace_back("    \"*\": {standardize: true}");
  for (const ColumnProfile* column : numbers)
    if (column->fills)
      data.push_back(fmt::format(
          "    {}: {{fill: median, missing_indicator: true, standardize: true}}   # {} missing",
          yamlText(column->key), column->missing - column->odd_fields));
}

void addCategories(std::vector<std::string>& data, const std::vector<CategoryPlan>& categories,
                   int64_t records) {
  if (categories.empty()) return;
  data.emplace_back(
      "  categorical_columns:   # each field names a row of the embedding of this name");
  for (const CategoryPlan& each : categories) {
    data.push_back(fmt::format("    {}:", yamlText(each.name)));
    addLines(data, yamlWords("columns", {each.column->key}, 6));
    if (each.column->learns_words) {
      data.push_back(vocabularyText(*each.column, records - each.column->missing));
      continue;
    }
    if (each.column->words.empty()) {
      data.push_back(fmt::format("      hash_bucket_size: {}   # for {}{}", each.rows,
                                 distinctText(*each.column),
                                 each.column->many ? ", taken for ids or free text" : ""));
      continue;
    }
    std::vector<std::string> words;
    for (const auto& [word, count] : each.column->words) words.push_back(word);
    addLines(data, yamlWords("vocabulary_list", words, 6));
    data.emplace_back("      num_oov_buckets: 1   # for an empty field, and for any other word");
  }
}

// "'none' (58 records)"
std::string quotedWords(const std::vector<WordCount>& words) {
  std::vector<std::string> texts;
  for (const auto& [word, records] : words)
    texts.push_back(fmt::format("'{}' ({})", printable(word),
                                amountText(static_cast<uint64_t>(records), "record")));
  return join(texts, ", ");
}

// Whether "none" is a class or a gap only a person knows.
void addMarkers(std::vector<std::string>& data, const ColumnProfile& target) {
  if (!target.doubtful_classes.empty()) {
    data.push_back("  # A class: " + quotedWords(target.doubtful_classes) + ".");
    data.emplace_back(
        "  # If it marks a gap, leave the field empty in the table, and run init again.");
  }
  if (!target.doubtful_gaps.empty()) {
    data.push_back("  # A gap; its records are left out: " + quotedWords(target.doubtful_gaps) +
                   ".");
    data.emplace_back("  # If it is a class, write another word for it, and run init again.");
  }
}

// Names that follow from the others are left out where they would fill a page.
bool areAllOthers(const TableProfile& table, size_t numbers) {
  constexpr size_t kNamesWritten = 200;
  return numbers > kNamesWritten &&
         std::none_of(table.columns.begin(), table.columns.end(),
                      [](const ColumnProfile& each) { return each.use == ColumnUse::kLeftOut; });
}

void addTable(JobDraft& draft, const TableProfile& table, const JobPlace& place,
              const std::vector<const ColumnProfile*>& numbers,
              const std::vector<CategoryPlan>& categories) {
  std::vector<std::string>& data = draft.data;
  data = {"train:", "  format: csv", "  files: [" + yamlPath(table.file, place.folder()) + "]",
          fmt::format("  header: {}", table.form.header)};
  if (table.form.delimiter != ',')
    data.push_back("  delimiter: " + (table.form.delimiter == '\t'
                                          ? std::string("tab")
                                          : yamlText(std::string(1, table.form.delimiter))));
  if (table.form.skip_lines > 0)
    data.push_back(fmt::format("  skip_lines: {}", table.form.skip_lines));
  if (table.form.decimal == ',') data.push_back("  decimal: comma");
  const ColumnProfile& target = table.columns[table.target];
  if (table.learns_classes) {
    std::vector<std::string> classes;
    for (const auto& [word, records] : target.words) classes.push_back(word);
    data.push_back("  label_column: " + yamlText(target.key));
    addMarkers(data, target);
    addLines(data, yamlWords("class_names", classes, 2));
  } else {
    addLines(data, yamlWords("target_columns", {target.key}, 2));
  }
  DTF_CHECK(!target.key.empty());
  std::vector<std::string> keys;
  for (const ColumnProfile* column : numbers) keys.push_back(column->key);
  if (!areAllOthers(table, numbers.size())) addLines(data, yamlWords("feature_columns", keys, 2));
  addNumeric(data, numbers);
  addCategories(data, categories, table.rows);
  if (table.rows_left_out > 0) {
    data.push_back(fmt::format("  # {} lack a value, and are left out. Others may come:",
                               amountText(static_cast<uint64_t>(table.rows_left_out), "record")));
    data.push_back(maxBadRecords(table.rows_left_out));
  }
}

}  // namespace

JobDraft tableJob(const TableProfile& table, const JobPlace& place) {
  DTF_CHECK(table.target < table.columns.size() && table.rows_left_out < table.rows);
  JobDraft draft;
  draft.findings = tableFindings(table);
  draft.input = table.file;
  draft.steps = table.learns_classes ? 1500 : 2500;
  planExamples(draft, table.rows - table.rows_left_out, false);
  const std::vector<const ColumnProfile*> numbers = numbersOf(table);
  const std::vector<CategoryPlan> categories = categoriesOf(table);
  addModel(draft, table, numbers, categories);
  addTable(draft, table, place, numbers, categories);
  return draft;
}

}  // namespace dtf::launcher
