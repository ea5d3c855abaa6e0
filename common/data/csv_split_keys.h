#pragma once

// The keys by which `data.eval_split` divides the records of a table: checksums of the text that
// the model reads, or the times or groups in one column.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/base/checksum.h"
#include "common/cluster/data_spec.h"
#include "common/data/csv_columns.h"
#include "common/data/csv_records.h"

namespace dtf::data {

// Owns: the keys. Borrows: the settings.
// Threads: thread-compatible.
class SplitKeys {
 public:
  // `wanted`: false: there are none.
  SplitKeys(const cluster::CsvSpec& spec, bool wanted) : spec_(spec), wanted_(wanted) {}

  // Reads the key of the current record. Returns its fault, "is no time to split by", or nothing.
  // Rejects only the field columns.split.
  std::string read(const CsvRecords& records, const CsvColumns& columns);
  void keep();  // the record is a good one

  std::vector<uint64_t> take() { return std::move(keys_); }

 private:
  uint64_t textKey(const CsvRecords& records, const CsvColumns& columns);

  const cluster::CsvSpec& spec_;
  const bool wanted_;
  Checksum checksum_;
  uint64_t key_ = 0;
  std::vector<uint64_t> keys_;
};

}  // namespace dtf::data
