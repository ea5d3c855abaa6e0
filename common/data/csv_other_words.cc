#include "common/data/csv_other_words.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/data/csv_numbers.h"

namespace dtf::data {

std::string shown(std::string_view text) {
  constexpr size_t kShownMax = 40;
  std::string shown(text.substr(0, kShownMax));
  std::replace_if(
      shown.begin(), shown.end(), [](unsigned char c) { return c < 0x20 || c == '"'; }, ' ');
  return shown + (text.size() > kShownMax ? "..." : "");
}

void OtherWordsCount::count(const CsvRecords& records, const CsvColumns& columns,
                            std::span<const CategoryReader> readers) {
  DTF_CHECK(readers.size() == columns.categories.size());
  for (size_t i = 0; i < readers.size(); ++i)
    for (size_t k = 0; k < columns.categories[i].size(); ++k) {
      const int64_t others = readers[i].otherWords(k);
      if (others == 0) continue;
      const size_t column = columns.categories[i][k];
      OtherWords& words = words_[column];
      if (words.count == 0) {
        words.column = columns.names[column];
        words.first = shown(trimmed(records.field(column)));
        words.where = records.where(column);
      }
      words.count += others;
    }
}

std::vector<OtherWords> OtherWordsCount::all() const {
  std::vector<OtherWords> all;
  for (const auto& [column, words] : words_) all.push_back(words);
  return all;
}

}  // namespace dtf::data
