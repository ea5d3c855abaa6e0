#include "common/data/other_words.h"

#include <fmt/format.h>

#include "common/base/text.h"

namespace dtf::data {

std::string otherWordsText(const OtherWords& words) {
  const bool is_one = words.count == 1;
  return printable(fmt::format(
      "{} in column '{}' {} not of its vocabulary_list ({}'{}' in {}): {} the row for other words",
      amountText(static_cast<uint64_t>(words.count), "word"), words.column, is_one ? "is" : "are",
      is_one ? "" : "first: ", words.first, words.where, is_one ? "it takes" : "they take"));
}

int64_t countOf(std::span<const OtherWords> columns) {
  int64_t all = 0;
  for (const OtherWords& words : columns) all += words.count;
  return all;
}

}  // namespace dtf::data
