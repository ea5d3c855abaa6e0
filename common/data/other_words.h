#pragma once

// The words of a table that its vocabulary_list lacks. A model has learnt little of them, or
// nothing.

#include <cstdint>
#include <span>
#include <string>

namespace dtf::data {

// The words of one column. Value type.
struct OtherWords {
  std::string column;
  int64_t count = 0;         // fields of records that are examples
  std::string first, where;  // "gold" in "new.csv:4:7"
};

// Returns "2 words in column 'plan' are not of its vocabulary_list (first: 'gold' in new.csv:4:7):
// they take the row for other words".
std::string otherWordsText(const OtherWords& words);

// Returns the number of such fields in all columns.
int64_t countOf(std::span<const OtherWords> columns);

}  // namespace dtf::data
