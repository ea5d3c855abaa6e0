#pragma once

// A table in text as a model may use it: which columns are numbers, words, row numbers or nothing,
// which column is learnt, and which records lack a value.

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "launcher/init/dataset_profile.h"

namespace dtf::launcher {

// The memory that the words of all columns may take. Beyond it the column with the most keeps only
// a sample of its words, and their number is an estimate. All samples together take as much again.
inline constexpr size_t kTableWordBytesMax = size_t{128} << 20;

// Returns how many words the sample of each of so many columns holds.
size_t sampleMaxOf(size_t columns);

// Reads the whole table, twice where records lack something. `target`: the column to learn, by name
// or by number from 1; nullopt: one that is named as such, or the last one. Where records lack
// numbers, the columns that most records lack are left out as long as that keeps more values than
// it drops. Blocks: on the disk. Errors: those of data::CsvRecords; kUsage at the first line of the
// file for a target that isn't there; kBadData for running text, and for a table without records,
// of one column, or whose target can't be learnt.
TableProfile profileTable(const std::filesystem::path& file,
                          const std::optional<std::string>& target,
                          size_t word_bytes_max = kTableWordBytesMax);

}  // namespace dtf::launcher
