#include "common/data/csv_categories.h"

#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/data/csv_numbers.h"

namespace dtf::data {

CategoryReader::CategoryReader(const cluster::CategoricalColumns& spec, std::string part,
                               size_t resident_max)
    : spec_(spec), part_(std::move(part)), numbers_(resident_max) {
  for (const std::string& word : spec.vocabulary_list)
    words_.emplace(word, static_cast<int32_t>(words_.size()));
}

PartSpec CategoryReader::spec() const {
  return {part_, DType::kInt32, Shape{spec_.input().count}};
}

std::string CategoryReader::add(std::string_view field) {
  const auto hashed = [field](int64_t buckets) {
    return static_cast<int32_t>(checksumOf(field) % static_cast<uint64_t>(buckets));
  };
  if (spec_.hash_bucket_size > 0) {
    record_.push_back(hashed(spec_.hash_bucket_size));
    return {};
  }
  if (!words_.empty()) {
    const auto found = words_.find(field);
    if (found == words_.end() && spec_.num_oov_buckets == 0)
      return "is none of the vocabulary_list (for other words there are num_oov_buckets)";
    record_.push_back(found != words_.end()
                          ? found->second
                          : static_cast<int32_t>(words_.size()) + hashed(spec_.num_oov_buckets));
    return {};
  }
  const std::optional<int32_t> number = numberOf<int32_t>(field);
  if (!number || *number < 0)
    return "is no whole number from 0 (for words there are hash_bucket_size and vocabulary_list)";
  record_.push_back(*number);
  return {};
}

bool CategoryReader::isOtherWord(size_t index) const {
  return !words_.empty() && static_cast<size_t>(record_.at(index)) >= words_.size();
}

void CategoryReader::keep() {
  DTF_CHECK(record_.size() == spec_.columns.size());
  numbers_.append(record_.data(), record_.size() * sizeof(int32_t));
  record_.clear();
}

}  // namespace dtf::data
