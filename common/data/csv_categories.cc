#include "common/data/csv_categories.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/data/csv_fields.h"
#include "common/data/csv_numbers.h"

namespace dtf::data {

CategoryReader::Kind CategoryReader::kindOf(const cluster::CategoricalColumns& spec,
                                            bool is_learned) {
  if (spec.hash_bucket_size > 0) return Kind::kHashed;
  if (!spec.buckets.empty()) return Kind::kBuckets;
  if (spec.learned_max_size > 0) return is_learned ? Kind::kListed : Kind::kLearning;
  return spec.vocabulary_list.empty() ? Kind::kNumbers : Kind::kListed;
}

CategoryReader::CategoryReader(const cluster::CategoricalColumns& spec, std::string part,
                               size_t resident_max, const std::vector<std::string>* learned,
                               char decimal)
    : spec_(spec),
      part_(std::move(part)),
      kind_(kindOf(spec, learned != nullptr)),
      decimal_(decimal),
      first_(spec.firstNumber()),
      numbers_(resident_max) {
  if (kind_ != Kind::kListed) return;
  for (const std::string& word : spec.learned_max_size > 0 ? *learned : spec.vocabulary_list)
    words_.emplace(word, static_cast<int32_t>(words_.size()));
}

PartSpec CategoryReader::spec() const {
  return {part_, DType::kInt32, Shape{spec_.count()}};
}

std::vector<std::string> CategoryReader::words() const {
  DTF_CHECK(kind_ == Kind::kLearning);
  std::vector<std::string> words(words_.size());
  for (const auto& [word, number] : words_) words[static_cast<size_t>(number)] = word;
  return words;
}

std::string CategoryReader::addNew(std::string_view word) {
  constexpr size_t kWordBytesMax = size_t{256} << 20, kBytesBeside = 96;
  word_bytes_ += word.size() + kBytesBeside;
  if (word_bytes_ > kWordBytesMax)
    throw Error(ErrorCode::kBadData,
                fmt::format("the columns of '{}' have more than {} different words, too many for a "
                            "vocabulary from data: use hash_bucket_size",
                            spec_.name, words_.size()));
  const auto number = static_cast<int32_t>(words_.size());
  words_.emplace(word, number);
  record_.push_back(first_ + number);
  return {};
}

std::string CategoryReader::addNumber(std::string_view field) {
  if (kind_ == Kind::kNumbers) {
    const std::optional<int32_t> number = numberOf<int32_t>(field);
    if (!number || *number < 0)
      return "is no whole number from 0 (for words there are hash_bucket_size and "
             "vocabulary_list)";
    record_.push_back(*number);
    return {};
  }
  const std::vector<double>& bounds = spec_.buckets;
  if (isMissingField(field)) {
    if (spec_.num_oov_buckets == 0)
      return "is a missing value (for such there is 'num_oov_buckets: 1')";
    record_.push_back(static_cast<int32_t>(bounds.size()) + 1);
    return {};
  }
  const std::optional<float> number = floatOf(field, decimal_);
  if (!number) return "is no number, and belongs to none of the buckets";
  const auto above = std::ranges::upper_bound(bounds, *number, {}, [](double bound) {
    return static_cast<float>(bound);  // as the number was rounded
  });
  record_.push_back(static_cast<int32_t>(above - bounds.begin()));
  return {};
}

std::string CategoryReader::add(std::string_view field) {
  return spec_.split == 0 ? addOne(field) : addWords(field);
}

// Adds max_words numbers.
std::string CategoryReader::addWords(std::string_view field) {
  const size_t end = record_.size() + static_cast<size_t>(spec_.max_words);
  int64_t words = 0;
  for (size_t begin = 0; begin <= field.size();) {
    const size_t next = std::min(field.find(spec_.split, begin), field.size());
    const std::string_view word = trimmed(field.substr(begin, next - begin));
    begin = next + 1;
    if (word.empty()) continue;
    if (++words > spec_.max_words) continue;  // only counted
    if (const std::string wrong = addOne(word); !wrong.empty())
      return fmt::format("has the word '{}', which {}", printable(word.substr(0, 40)), wrong);
  }
  if (words > spec_.max_words)
    return fmt::format("has {} words, and 'max_words' is {}: set it to the most that a field has",
                       words, spec_.max_words);
  record_.resize(end);
  return {};
}

std::string CategoryReader::addOne(std::string_view field) {
  const auto hashed = [field](int64_t buckets) {
    return static_cast<int32_t>(checksumOf(field) % static_cast<uint64_t>(buckets));
  };
  if (kind_ == Kind::kHashed) {
    record_.push_back(first_ + hashed(spec_.hash_bucket_size));
    return {};
  }
  if (kind_ == Kind::kNumbers || kind_ == Kind::kBuckets) return addNumber(field);
  const auto found = words_.find(field);
  if (found == words_.end() && kind_ == Kind::kLearning) return addNew(field);
  if (found == words_.end() && spec_.num_oov_buckets == 0)
    return "is none of the vocabulary_list (for other words there are num_oov_buckets)";
  record_.push_back(first_ + (found != words_.end() ? found->second
                                                    : static_cast<int32_t>(words_.size()) +
                                                          hashed(spec_.num_oov_buckets)));
  return {};
}

int64_t CategoryReader::otherWords(size_t index) const {
  if (kind_ != Kind::kListed) return 0;
  const size_t of_field = spec_.split == 0 ? 1 : static_cast<size_t>(spec_.max_words);
  DTF_CHECK((index + 1) * of_field <= record_.size());
  const auto numbers = std::span(record_).subspan(index * of_field, of_field);
  return std::ranges::count_if(numbers, [this](int32_t number) {
    return number >= first_ + static_cast<int32_t>(words_.size());
  });
}

void CategoryReader::keep() {
  DTF_CHECK(static_cast<int64_t>(record_.size()) == spec_.count());
  numbers_.append(record_.data(), record_.size() * sizeof(int32_t));
  record_.clear();
}

}  // namespace dtf::data
