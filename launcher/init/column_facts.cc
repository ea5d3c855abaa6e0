#include "launcher/init/column_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <system_error>
#include <utility>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/data/csv_fields.h"
#include "common/data/csv_numbers.h"
#include "launcher/init/yaml_text.h"

namespace dtf::launcher {

namespace {

constexpr double kNearlyAll = 0.95;
constexpr int64_t kClassNumbersMax = 20;  // different whole numbers that are classes
constexpr size_t kWordBytesMax = 4096;    // as isWritable()
constexpr size_t kWordCost = 96;          // of an entry of the table of words
constexpr size_t kOddBytesMax = 256;      // more is not shown

std::string lowerCase(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

// "id", "user_id", "PassengerId", or the word for a thing of which a recommender has many.
bool isNamedAsId(const std::string& name) {
  constexpr std::array<std::string_view, 6> kThings = {"user",    "item",     "product",
                                                       "account", "customer", "index"};
  const std::string lower = lowerCase(name);
  if (std::find(kThings.begin(), kThings.end(), lower) != kThings.end()) return true;
  if (lower == "id" || name.ends_with("Id") || name.ends_with("ID")) return true;
  return lower.ends_with("_id") || lower.ends_with(" id") || lower.ends_with("-id");
}

// Numbers by size, then words byte by byte.
bool isBefore(const WordCount& one, const WordCount& other) {
  const std::optional<double> a = data::numberOf<double>(one.first);
  const std::optional<double> b = data::numberOf<double>(other.first);
  if (a && b && *a != *b) return *a < *b;
  if (a.has_value() != b.has_value()) return a.has_value();
  return one.first < other.first;
}

std::vector<WordCount> sorted(std::vector<WordCount> words) {
  std::sort(words.begin(), words.end(), isBefore);
  return words;
}

// "none", "NA": a word that may be a class as well.
bool isMarkerWord(std::string_view field) {
  constexpr std::array<std::string_view, 4> kWords = {"none", "na", "n/a", "null"};
  return std::find(kWords.begin(), kWords.end(), lowerCase(field)) != kWords.end();
}

}  // namespace

bool isDate(std::string_view field) {
  std::array<int, 3> parts{};
  std::array<ptrdiff_t, 3> digits{};
  const char* at = field.data();
  const char* const end = at + field.size();
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto [after, error] = std::from_chars(at, end, parts[i]);
    if (error != std::errc() || *at == '-') return false;
    digits[i] = after - at;
    at = after;
    if (i + 1 == parts.size()) break;
    const bool divided = at != end && (*at == '-' || *at == '.' || *at == '/');
    if (!divided || *at != field[static_cast<size_t>(digits[0])]) return false;
    ++at;
  }
  const bool has_end = at == end || ((*at == 'T' || *at == ' ') && at + 1 != end &&
                                     std::isdigit(static_cast<unsigned char>(at[1])) != 0);
  const auto isDay = [](int one, int other) {  // and a month, in any order
    return std::min(one, other) >= 1 && std::min(one, other) <= 12 && std::max(one, other) <= 31;
  };
  if (digits[0] == 4) return has_end && isDay(parts[1], parts[2]);
  return has_end && digits[2] == 4 && isDay(parts[0], parts[1]);
}

std::optional<double> numberOfField(std::string_view field, char decimal) {
  if (isMissingField(field)) return std::nullopt;
  const std::optional<double> number = data::decimalOf(field, decimal);
  return number && std::isfinite(static_cast<float>(*number)) ? number : std::nullopt;
}

void DistinctWords::add(std::string_view word) {
  const auto counts = [this](uint64_t checksum) {
    return (checksum & ((uint64_t{1} << zero_bits_) - 1)) == 0;
  };
  const uint64_t checksum = checksumOf(word);
  if (counts(checksum)) sample_.insert(checksum);
  while (sample_.size() > sample_max_) {
    ++zero_bits_;
    std::erase_if(sample_, [&counts](uint64_t each) { return !counts(each); });
  }
}

void ColumnFacts::add(std::string_view field) {
  ++fields_;
  if (isMissingField(field)) {
    ++missing_;
    if (isMarkerWord(field)) ++markers_[std::string(field)];
    return;
  }
  const std::optional<double> number = numberOfField(field, decimal_);
  if (number) {
    ++numbers_;
    whole_ += *number == std::floor(*number);
    counts_rows_ = counts_rows_ && (!last_ || *number == *last_ + 1);
    last_ = number;
    const double distance = *number - mean_;
    mean_ += distance / static_cast<double>(numbers_);
    squares_ += distance * (*number - mean_);
  } else {
    if (odd_.empty()) odd_ = field.substr(0, kOddBytesMax);
    dates_ += isDate(field);
  }
  addWord(field);
}

// A word that no file can hold is not listed, so none of the column is.
void ColumnFacts::addWord(std::string_view word) {
  if (!many_ && word.size() > kWordBytesMax) forgetWords();
  if (many_) return estimate_.add(word);
  if (++words_[std::string(word)] == 1) word_bytes_ += kWordCost + word.size();
  if (words_.size() > kWordsCounted) forgetWords();
}

void ColumnFacts::forgetWords() {
  DTF_CHECK(!many_);
  many_ = true;
  for (const auto& [word, records] : words_) estimate_.add(word);
  words_ = {};
  word_bytes_ = 0;
}

int64_t ColumnFacts::distinct() const {
  return many_ ? std::min(estimate_.count(), filled()) : static_cast<int64_t>(words_.size());
}

bool ColumnFacts::isNearlyAll(int64_t fields) const {
  DTF_CHECK(fields <= filled());
  return fields > 0 && static_cast<double>(fields) >= kNearlyAll * static_cast<double>(filled());
}

bool ColumnFacts::isNumeric() const {
  return isNearlyAll(numbers_);
}

bool ColumnFacts::areDates() const {
  return isNearlyAll(dates_);
}

void ColumnFacts::count(ColumnProfile& column) const {
  DTF_CHECK(missing_ <= fields_);
  column.missing = missing_;
  column.many = many_;
  column.distinct = distinct();
  column.mean = mean_;
  column.deviation = numbers_ > 0 ? std::sqrt(squares_ / static_cast<double>(numbers_)) : 0;
}

std::string ColumnFacts::uselessNumbers(const std::string& name) const {
  const bool all_differ = many_ ? 10 * distinct() > 9 * filled() : distinct() == filled();
  const bool all_whole = whole_ == filled();
  if (distinct() == 1) return "every record has the same number";
  if (all_whole && counts_rows_ && filled() > 2) return "it counts the records";
  if (all_whole && all_differ && isNamedAsId(name)) return "it numbers the records";
  return "";
}

std::string ColumnFacts::uselessWords() const {
  constexpr int64_t kFewWords = 10;
  const int64_t different = distinct();
  if (different == 1) return "every record has the same word";
  if (different == filled() || (different > kFewWords && 2 * different > filled()))
    return "nearly every record has a text of its own";
  return "";
}

// "0,5" where other columns have points, or the other way round.
bool ColumnFacts::hasOtherDecimal(const std::string& field) const {
  return data::decimalOf(field, decimal_ == '.' ? ',' : '.').has_value();
}

void ColumnFacts::judgeFeature(ColumnProfile& column, bool as_words) const {
  count(column);
  column.dates = areDates();
  using Use = ColumnProfile::Use;
  column.use = Use::kLeftOut;
  if (filled() == 0) {
    column.why = "no record has a value";
    return;
  }
  const bool is_id = isNamedAsId(column.name) && whole_ == filled();
  if (isNumeric()) {
    column.why = uselessNumbers(column.name);
    if (!column.why.empty()) return;
    if (!is_id) {
      column.use = Use::kNumber;
      column.missing += others();
      column.odd_fields = others();
      column.odd = odd_;
      return;
    }
  } else if (column.dates && !as_words) {
    column.why =
        "dates, which dtf has no reader for: add columns of numbers instead, such as the month";
    return;
  } else {
    column.why =
        hasOtherDecimal(odd_)
            ? fmt::format("'{}' has a decimal {}, other columns have a {}", odd_,
                          decimal_ == '.' ? "comma" : "point", decimal_ == '.' ? "point" : "comma")
            : uselessWords();
    if (!column.why.empty()) return;
  }
  column.use = Use::kWords;
  const bool writable = std::all_of(words_.begin(), words_.end(),
                                    [](const auto& each) { return isWritable(each.first); });
  if (many_ || is_id || !writable) return;  // hashed
  constexpr size_t kLearnedBytesMax = size_t{1} << 20;
  if (words_.size() <= kListedWordsMax)
    column.words = sorted({words_.begin(), words_.end()});
  else
    column.learns_words = word_bytes_ <= kLearnedBytesMax;
}

// Fills the words of a column of classes, and those that may be classes or gaps.
void ColumnFacts::judgeMarkers(ColumnProfile& column) const {
  column.words = {words_.begin(), words_.end()};
  int64_t rarest = fields_;
  for (const auto& [word, records] : words_) rarest = std::min(rarest, records);
  for (const auto& [word, records] : markers_) {
    const bool is_class = 2 * records >= rarest || (!isNumeric() && lowerCase(word) == "none");
    (is_class ? column.doubtful_classes : column.doubtful_gaps).emplace_back(word, records);
    if (!is_class) continue;
    column.words.emplace_back(word, records);
    column.missing -= records;
  }
  column.words = sorted(std::move(column.words));
}

bool ColumnFacts::judgeTarget(ColumnProfile& column, std::string& wrong) const {
  DTF_CHECK(wrong.empty());
  count(column);
  column.use = ColumnProfile::Use::kTarget;
  const int64_t few = std::clamp<int64_t>(filled() / 10, 2, kClassNumbersMax);
  const bool few_words = !many_ && static_cast<int64_t>(words_.size()) <= few;
  const bool classes = isNumeric() ? whole_ == filled() && few_words : true;
  if (classes && !many_) judgeMarkers(column);
  const int64_t values = fields_ - column.missing;
  if (values == 0)
    wrong = "no record has a value of it";
  else if (!many_ && words_.size() <= 1 && column.words.size() <= 1)
    wrong = fmt::format("every record has '{}' in it, so there is nothing to tell apart",
                        words_.empty() ? column.words[0].first : words_.begin()->first);
  else if (hasOtherDecimal(odd_))
    wrong = fmt::format(
        "'{}' has a decimal {}, and other columns have a {}: write all numbers in "
        "one way",
        odd_, decimal_ == '.' ? "comma" : "point", decimal_ == '.' ? "point" : "comma");
  if (!wrong.empty()) return classes;
  if (!classes) {
    column.missing += others();
    column.odd = odd_;
    return false;
  }
  const auto different = static_cast<int64_t>(column.words.size());
  if (many_ || column.words.size() > kListedClassesMax || different == values)
    wrong = fmt::format("it has {}{} different words in {} records, which are no classes",
                        many_ ? "about " : "", many_ ? distinct() : different, values);
  else if (!std::all_of(words_.begin(), words_.end(),
                        [](const auto& each) { return isWritable(each.first); }))
    wrong = "a word of it is not UTF-8, or longer than 4096 bytes: save the table as UTF-8";
  return true;
}

}  // namespace dtf::launcher
