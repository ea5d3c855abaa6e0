#pragma once

// Counts the words of a table that a vocabulary_list lacks.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/data/csv_categories.h"
#include "common/data/csv_columns.h"
#include "common/data/csv_records.h"
#include "common/data/other_words.h"

namespace dtf::data {

// Returns the begin of a field, fit for a line of the log.
std::string shown(std::string_view text);

// The words of all columns.
// Owns: the counts. Borrows nothing.
// Threads: thread-compatible.
class OtherWordsCount {
 public:
  // Counts the words of the current record, before the readers keep it. There is a reader for each
  // of the columns' categories (DTF_CHECK).
  void count(const CsvRecords& records, const CsvColumns& columns,
             std::span<const CategoryReader> readers);

  // One entry for each column that has such words.
  std::vector<OtherWords> all() const;

 private:
  std::map<size_t, OtherWords> words_;  // by column
};

}  // namespace dtf::data
