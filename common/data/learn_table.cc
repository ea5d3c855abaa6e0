#include "common/data/learn_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/data/column_statistics.h"
#include "common/data/csv_numbers.h"
#include "common/data/csv_reader.h"
#include "common/data/data_signature.h"
#include "common/data/eval_split.h"
#include "common/yaml/error_at.h"

namespace dtf::data {

namespace {

using cluster::LearnedTable;
using cluster::PreparedColumn;
using Words = std::vector<std::string>;

// Values that all medians of a table keep together: 128 MiB.
constexpr size_t kMedianValues = size_t{8} << 20;
constexpr size_t kMedianValuesOfOne = size_t{1} << 20;

// Returns the examples to train on, of the examples `used`.
std::vector<int64_t> trainedExamples(const Dataset& data, const std::vector<int64_t>& used,
                                     const std::optional<cluster::EvalSplit>& split) {
  if (!split) return used;
  return examplesOfSide(data, {split->fraction, false, split->by}, used);
}

std::vector<PreparedColumn> learnNumbers(const UnpreparedTable& table,
                                         const std::vector<int64_t>& examples) {
  std::vector<PreparedColumn> columns = table.features;
  const auto medians =
      static_cast<size_t>(std::ranges::count_if(columns, [](const PreparedColumn& each) {
        return each.settings.fill == cluster::NumericColumn::Fill::kMedian;
      }));
  const size_t median_max =
      std::min(kMedianValuesOfOne, kMedianValues / std::max<size_t>(1, medians));
  std::vector<std::pair<size_t, ColumnStatistics>> statistics;
  for (size_t i = 0; i < columns.size(); ++i)
    if (columns[i].settings.learns())
      statistics.emplace_back(i, ColumnStatistics(columns[i].settings, median_max));
  if (statistics.empty()) return columns;
  const std::span<const float> numbers = table.data.features().as<float>();
  for (const int64_t example : examples) {
    const float* const record = &numbers[static_cast<size_t>(example) * columns.size()];
    for (auto& [column, learner] : statistics)
      if (!std::isnan(record[column])) learner.add(record[column]);
  }
  for (const auto& [column, learner] : statistics) columns[column] = learner.learned();
  return columns;
}

// Returns how often each word has its number among the examples. `first`: the number of the first
// word; smaller ones are no words.
std::vector<int64_t> countsOf(const Part& numbers, const std::vector<int64_t>& examples,
                              size_t words, int32_t first = 0) {
  std::vector<int64_t> counts(words);
  const auto of_one = static_cast<size_t>(numbers.spec().shape.elements());
  const std::span<const int32_t> all = numbers.as<int32_t>();
  for (const int64_t example : examples)
    for (const int32_t number : all.subspan(static_cast<size_t>(example) * of_one, of_one))
      if (number >= first) ++counts[static_cast<size_t>(number - first)];
  return counts;
}

// A signature holds words as UTF-8.
void checkUtf8(const Words& words, const std::string& what) {
  for (const std::string& word : words)
    if (asUtf8(word) != word)
      throw Error(ErrorCode::kBadData,
                  fmt::format("the word '{}' of {} is not UTF-8, so no model can keep it: convert "
                              "the table, as with iconv -f latin1 -t utf-8",
                              asUtf8(printable(word)), what));
}

Words learnVocabulary(const cluster::CategoricalColumns& settings, const Words& words,
                      const std::vector<int64_t>& counts) {
  std::vector<size_t> order;
  for (size_t i = 0; i < words.size(); ++i)
    if (counts[i] >= settings.learned_min_count) order.push_back(i);
  std::ranges::sort(order, [&](size_t a, size_t b) {
    return counts[a] != counts[b] ? counts[a] > counts[b] : words[a] < words[b];
  });
  if (order.empty())
    throw yaml::ErrorAt(
        ErrorCode::kBadData, settings.mark,
        fmt::format("no word of '{}' occurs {} times in the training data: choose a "
                    "smaller min_count",
                    settings.name, settings.learned_min_count));
  order.resize(std::min(order.size(), static_cast<size_t>(settings.learned_max_size)));
  Words learned;
  for (const size_t word : order) learned.push_back(words[word]);
  checkUtf8(learned, "'" + settings.name + "'");
  return learned;
}

// Numbers come before other words.
bool isSmallerClass(const std::string& a, const std::string& b) {
  const std::optional<double> x = numberOf<double>(a), y = numberOf<double>(b);
  if (x && y && *x != *y) return *x < *y;
  return x.has_value() != y.has_value() ? x.has_value() : a < b;
}

Words learnClasses(const UnpreparedTable& table, const std::vector<int64_t>& examples) {
  const std::vector<int64_t> counts = countsOf(table.data.labels(), examples, table.classes.size());
  Words classes;
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0) classes.push_back(table.classes[i]);
  std::ranges::sort(classes, isSmallerClass);
  checkUtf8(classes, "the label");
  if (classes.size() < 2)
    throw Error(
        ErrorCode::kBadData,
        printable(fmt::format("{}: all labels to train on are '{}': a model learns at least "
                              "two classes",
                              table.data.labels().source(), classes.at(0))));
  return classes;
}

// A checkpoint's manifest has room for so many.
void checkLength(const LearnedTable& learned) {
  constexpr size_t kBytesMax = size_t{8} << 20;
  size_t bytes = 0;
  const auto add = [&bytes](const Words& words) {
    for (const std::string& word : words) bytes += word.size();
  };
  for (const Words& words : learned.words) add(words);
  add(learned.class_names);
  if (bytes > kBytesMax)
    throw Error(ErrorCode::kBadData,
                fmt::format("the words to learn have {} bytes, and a checkpoint holds {}: choose a "
                            "smaller max_size, or hash_bucket_size",
                            bytes, kBytesMax));
}

// The numbers of categories `index`.
const Part& numbersOf(const cluster::CsvSpec& csv, const UnpreparedTable& table, size_t index) {
  const size_t replaced = csv.no_features ? 1 : 0;  // the first is the features
  return index < replaced ? table.data.features() : table.data.categories()[index - replaced];
}

LearnedTable learnFrom(const cluster::CsvSpec& csv, const UnpreparedTable& table,
                       const std::vector<int64_t>& examples) {
  LearnedTable learned;
  learned.features = learnNumbers(table, examples);
  for (size_t i = 0; i < csv.categorical.size(); ++i) {
    const cluster::CategoricalColumns& each = csv.categorical[i];
    Words& words = learned.words.emplace_back();
    if (each.learned_max_size == 0) continue;
    const size_t count = table.words[i].size();
    words =
        learnVocabulary(each, table.words[i],
                        countsOf(numbersOf(csv, table, i), examples, count, each.firstNumber()));
  }
  if (csv.learns_classes) learned.class_names = learnClasses(table, examples);
  return learned;
}

// Removes the examples that have a number of `words` outside of `learned`: the second pass leaves
// their records out.
void removeUnknown(const Part& numbers, const Words& words, const Words& learned, int32_t first,
                   std::vector<int64_t>& examples) {
  const std::unordered_set<std::string_view> known(learned.begin(), learned.end());
  if (known.size() == words.size()) return;
  std::vector<bool> is_known;
  for (const std::string& word : words) is_known.push_back(known.contains(word));
  const auto of_one = static_cast<size_t>(numbers.spec().shape.elements());
  const std::span<const int32_t> all = numbers.as<int32_t>();
  std::erase_if(examples, [&](int64_t example) {
    const auto own = all.subspan(static_cast<size_t>(example) * of_one, of_one);
    return std::ranges::any_of(own, [&](int32_t number) {
      return number >= first && !is_known[static_cast<size_t>(number - first)];
    });
  });
}

// Returns the examples of `used` that can be read with what was learned from them.
std::vector<int64_t> readableExamples(const cluster::CsvSpec& csv, const UnpreparedTable& table,
                                      const LearnedTable& learned, std::vector<int64_t> used) {
  for (size_t i = 0; i < csv.categorical.size(); ++i) {
    const cluster::CategoricalColumns& each = csv.categorical[i];
    if (each.learned_max_size > 0 && each.num_oov_buckets == 0)
      removeUnknown(numbersOf(csv, table, i), table.words[i], learned.words[i], each.firstNumber(),
                    used);
  }
  if (csv.learns_classes)
    removeUnknown(table.data.labels(), table.classes, learned.class_names, 0, used);
  return used;
}

// A record with a class or word that the training examples lack is left out. It must not count for
// the border of a split, or for a number: so these are learned again from the records that are
// left, until no further one is left out.
LearnedTable learn(const cluster::DatasetSpec& spec) {
  const UnpreparedTable table = readUnprepared(spec.files, spec.csv);
  std::vector<int64_t> used(static_cast<size_t>(table.data.size()));
  std::iota(used.begin(), used.end(), 0);
  for (;;) {
    LearnedTable learned =
        learnFrom(spec.csv, table, trainedExamples(table.data, used, spec.split));
    std::vector<int64_t> readable = readableExamples(spec.csv, table, learned, used);
    const auto left_out = table.data.size() - static_cast<int64_t>(readable.size());
    // The second pass reports records that are too many to be left out.
    if (readable.size() == used.size() || readable.empty() || left_out > spec.csv.max_bad_records) {
      checkLength(learned);
      return learned;
    }
    used = std::move(readable);
  }
}

}  // namespace

cluster::DatasetSpec learnTable(const cluster::DatasetSpec& spec) {
  if (spec.format != cluster::DatasetSpec::Format::kCsv || !spec.csv.learns() || spec.csv.learned)
    return spec;
  cluster::DatasetSpec learned = spec;
  try {
    learned.csv.learned = learn(spec);
  } catch (const yaml::ErrorAt&) {
    throw;  // it has a place already
  } catch (const Error& error) {
    throw yaml::ErrorAt(error.code(), spec.files_marks.at(0), error.message());
  }
  return learned;
}

}  // namespace dtf::data
