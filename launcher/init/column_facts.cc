#include "launcher/init/column_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>

#include "common/base/check.h"
#include "common/data/csv_numbers.h"
#include "launcher/init/yaml_text.h"

namespace dtf::launcher {

namespace {

constexpr double kNumericShare = 0.95;
constexpr int64_t kClassNumbersMax = 20;  // different whole numbers that are classes

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

// "0,5", as spreadsheets of many languages write a number.
bool hasDecimalComma(const std::string& field) {
  std::string with_point = field;
  std::replace(with_point.begin(), with_point.end(), ',', '.');
  return with_point != field && data::numberOf<double>(with_point).has_value();
}

// Numbers by size, then words byte by byte.
bool isBefore(const WordCount& one, const WordCount& other) {
  const std::optional<double> a = data::numberOf<double>(one.first);
  const std::optional<double> b = data::numberOf<double>(other.first);
  if (a && b && *a != *b) return *a < *b;
  if (a.has_value() != b.has_value()) return a.has_value();
  return one.first < other.first;
}

}  // namespace

bool isMissingField(std::string_view field) {
  constexpr std::array<std::string_view, 9> kMarkers = {"",     "na", "n/a", "nan", "null",
                                                        "none", "?",  "-",   "--"};
  return field.size() <= 4 &&
         std::find(kMarkers.begin(), kMarkers.end(), lowerCase(field)) != kMarkers.end();
}

bool ColumnFacts::add(std::string_view field) {
  ++fields_;
  if (isMissingField(field)) {
    ++missing_;
    return false;
  }
  const std::optional<double> number = data::numberOf<double>(field);
  const bool is_number = number && std::isfinite(static_cast<float>(*number));
  if (is_number) {
    ++numbers_;
    whole_ += *number == std::floor(*number);
    counts_rows_ = counts_rows_ && (!last_ || *number == *last_ + 1);
    last_ = number;
    const double distance = *number - mean_;
    mean_ += distance / static_cast<double>(numbers_);
    squares_ += distance * (*number - mean_);
  } else if (odd_.empty()) {
    odd_ = field;
  }
  if (many_) return is_number;
  ++words_[std::string(field)];
  if (words_.size() > kWordsCounted) {
    many_ = true;
    words_.clear();
  }
  return is_number;
}

bool ColumnFacts::isNumeric() const {
  DTF_CHECK(numbers_ <= filled());
  return numbers_ > 0 &&
         static_cast<double>(numbers_) >= kNumericShare * static_cast<double>(filled());
}

std::vector<WordCount> ColumnFacts::sortedWords() const {
  std::vector<WordCount> words(words_.begin(), words_.end());
  std::sort(words.begin(), words.end(), isBefore);
  return words;
}

void ColumnFacts::count(ColumnProfile& column) const {
  DTF_CHECK(missing_ <= fields_);
  column.missing = missing_;
  column.many = many_;
  column.distinct = static_cast<int64_t>(many_ ? kWordsCounted : words_.size());
  column.mean = mean_;
  column.deviation = numbers_ > 0 ? std::sqrt(squares_ / static_cast<double>(numbers_)) : 0;
}

std::string ColumnFacts::uselessNumbers(const std::string& name) const {
  const bool all_differ = many_ || static_cast<int64_t>(words_.size()) == filled();
  const bool all_whole = whole_ == filled();
  if (words_.size() == 1) return "every record has the same number";
  if (all_whole && counts_rows_ && filled() > 2) return "it counts the records";
  if (all_whole && all_differ && isNamedAsId(name)) return "it numbers the records";
  return "";
}

std::string ColumnFacts::uselessWords() const {
  const auto distinct = static_cast<int64_t>(words_.size());
  constexpr int64_t kFewWords = 10;
  if (distinct == 1) return "every record has the same word";
  if (many_ ? filled() < 2 * static_cast<int64_t>(kWordsCounted)
            : distinct == filled() || (distinct > kFewWords && 2 * distinct > filled()))
    return "nearly every record has a text of its own";
  return "";
}

void ColumnFacts::judgeFeature(ColumnProfile& column) const {
  count(column);
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
      column.odd = odd_;
      return;
    }
  } else {
    column.why = hasDecimalComma(odd_)
                     ? fmt::format("'{}' has a decimal comma, and numbers need a point", odd_)
                     : uselessWords();
    if (!column.why.empty()) return;
  }
  column.use = Use::kWords;
  const bool writable = std::all_of(words_.begin(), words_.end(),
                                    [](const auto& each) { return isWritable(each.first); });
  if (!many_ && !is_id && writable && words_.size() <= kListedWordsMax)
    column.words = sortedWords();
}

bool ColumnFacts::judgeTarget(ColumnProfile& column, std::string& wrong) const {
  DTF_CHECK(wrong.empty());
  count(column);
  column.use = ColumnProfile::Use::kTarget;
  const int64_t few = std::clamp<int64_t>(filled() / 10, 2, kClassNumbersMax);
  const bool few_words = !many_ && static_cast<int64_t>(words_.size()) <= few;
  const bool classes = isNumeric() ? whole_ == filled() && few_words : true;
  if (filled() == 0)
    wrong = "no record has a value of it";
  else if (!many_ && words_.size() == 1)
    wrong = fmt::format("every record has '{}' in it, so there is nothing to tell apart",
                        words_.begin()->first);
  else if (hasDecimalComma(odd_))
    wrong = fmt::format("'{}' has a decimal comma: write numbers with a point", odd_);
  if (!wrong.empty()) return classes;
  if (!classes) {
    column.missing += others();
    column.odd = odd_;
    return false;
  }
  if (many_ || words_.size() > kListedClassesMax || static_cast<int64_t>(words_.size()) == filled())
    wrong = fmt::format(
        "it has {} different words in {} records, which are no classes",
        many_ ? fmt::format("more than {}", kWordsCounted) : std::to_string(words_.size()),
        filled());
  else if (!std::all_of(words_.begin(), words_.end(),
                        [](const auto& each) { return isWritable(each.first); }))
    wrong = "a word of it is no UTF-8, or longer than 4096 bytes: save the table as UTF-8";
  column.words = sortedWords();
  return true;
}

}  // namespace dtf::launcher
