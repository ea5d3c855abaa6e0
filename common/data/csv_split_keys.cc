#include "common/data/csv_split_keys.h"

#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/data/csv_numbers.h"
#include "common/data/csv_times.h"

namespace dtf::data {

uint64_t SplitKeys::textKey(const CsvRecords& records, const CsvColumns& columns) {
  checksum_.reset();
  const auto add = [&](const std::vector<size_t>& all) {
    for (const size_t column : all) {
      const std::string_view field = trimmed(records.field(column));
      checksum_.update(field.data(), field.size());
      checksum_.update("", 1);  // a zero behind each field
    }
  };
  add(columns.features);
  add(columns.targets);
  if (columns.label) add({*columns.label});
  for (const std::vector<size_t>& each : columns.categories) add(each);
  return checksum_.value();
}

std::string SplitKeys::read(const CsvRecords& records, const CsvColumns& columns) {
  if (!wanted_) return {};
  if (spec_.split_by == cluster::SplitBy::kHash) {
    key_ = textKey(records, columns);
    return {};
  }
  DTF_CHECK(columns.split.has_value());
  const std::string_view field = records.field(*columns.split);
  if (spec_.split_by == cluster::SplitBy::kGroup) {
    key_ = checksumOf(trimmed(field));
    return {};
  }
  const std::optional<uint64_t> time = timeKey(field, spec_.decimal);
  key_ = time.value_or(0);
  return time ? ""
              : "is no time to split by: a number, or a date such as 2024-05-31 or "
                "2024-05-31T12:30:00";
}

void SplitKeys::keep() {
  if (wanted_) keys_.push_back(key_);
}

}  // namespace dtf::data
