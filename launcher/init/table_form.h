#pragma once

// The form of a table in text, found from its first records.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/error.h"

namespace dtf::launcher {

// Value type.
struct TableForm {
  char delimiter = ',';
  char decimal = '.';                          // or a comma
  bool header = true;                          // the first record names the columns
  int64_t skip_lines = 0;                      // before it
  std::vector<std::string> first_record = {};  // its fields, without the spaces around them
};

// Returns the form in which nearly all of the first records have the same number of fields, the
// most of all. Up to 20 records before the first of these are skipped. Blocks: on the disk. Errors:
// those of data::CsvRecords; kBadData at the first line of the file for running text, and for a
// text of one column.
TableForm findTableForm(const std::filesystem::path& file);

// Throws `code` with `why` at the first line of the file.
[[noreturn]] void failTable(const std::filesystem::path& file, ErrorCode code,
                            const std::string& why);

}  // namespace dtf::launcher
