#include "common/data/csv_categories.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/error.h"
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
      numbers_(resident_max) {
  if (kind_ != Kind::kListed) return;
  for (const std::string& word : spec.learned_max_size > 0 ? *learned : spec.vocabulary_list)
    words_.emplace(word, static_cast<int32_t>(words_.size()));
}

PartSpec CategoryReader::spec() const {
  return {part_, DType::kInt32, Shape{spec_.input().count}};
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
  record_.push_back(number);
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
  const auto hashed = [field](int64_t buckets) {
    return static_cast<int32_t>(checksumOf(field) % static_cast<uint64_t>(buckets));
  };
  if (kind_ == Kind::kHashed) {
    record_.push_back(hashed(spec_.hash_bucket_size));
    return {};
  }
  if (kind_ == Kind::kNumbers || kind_ == Kind::kBuckets) return addNumber(field);
  const auto found = words_.find(field);
  if (found == words_.end() && kind_ == Kind::kLearning) return addNew(field);
  if (found == words_.end() && spec_.num_oov_buckets == 0)
    return "is none of the vocabulary_list (for other words there are num_oov_buckets)";
  record_.push_back(found != words_.end()
                        ? found->second
                        : static_cast<int32_t>(words_.size()) + hashed(spec_.num_oov_buckets));
  return {};
}

bool CategoryReader::isOtherWord(size_t index) const {
  return kind_ == Kind::kListed && static_cast<size_t>(record_.at(index)) >= words_.size();
}

void CategoryReader::keep() {
  DTF_CHECK(record_.size() == spec_.columns.size());
  numbers_.append(record_.data(), record_.size() * sizeof(int32_t));
  record_.clear();
}

}  // namespace dtf::data
