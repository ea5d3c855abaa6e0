#pragma once

// Tables in text (CSV): features from some columns, one class or some numbers to learn from others.
//
// Files are untrusted. A record that can't be read (too few or many fields, a field that is no
// number, a class that there isn't) is named with its place; it ends the reading, unless the job's
// file lets so many be left out (bad_records.h).

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "common/cluster/data_spec.h"
#include "common/data/csv_columns.h"
#include "common/data/dataset.h"

namespace dtf::data {

// What the first lines say, without reading the rest.
struct CsvHeader {
  PartSpec features;
  PartSpec labels;
  std::vector<std::string> columns;  // the names of all
  TrainedColumns trained;            // the model's inputs and targets, as in the file
};

// Blocks: on the disk, shortly.
// Errors: kBadData naming the file: missing, empty, no text; kBadConfig for a column that isn't
// there or is asked for twice, or files with different headers.
CsvHeader readCsvHeader(std::span<const std::filesystem::path> files, const cluster::CsvSpec& spec);

// Of all files, in order. Their numbers are in memory as long as they are few (growing_block.h).
// Blocks: on the disk; about 10 MB take 0.1 s.
// Errors: as readCsvHeader(); kBadData with file, line and column of the first bad records, where
// there are more than CsvSpec::max_bad_records, and when no good one is left; kCannotWrite without
// room for many.
Dataset readCsv(std::span<const std::filesystem::path> files, const cluster::CsvSpec& spec);

// What a model reads of each record.
struct CsvExamples {
  Part features;
  std::vector<Part> categories;  // as Dataset::categories()
  std::vector<BadRecord> unread = {};
  std::vector<std::string> truths = {};  // as UnlabelledExamples'
};

// Those of a table that needs no label or targets: the columns of the names `trained`, in
// that order wherever they stand, or, without a header, of its numbers. Without `trained`, for a
// job without categories, the columns that `spec` asks for; as features, where it names none, all
// others where there are `width` of them, or all but the label and the targets.
// Where the table has the targets, their fields are returned as they are.
// Errors: as readCsv(); of bad records any number is given, but not all.
CsvExamples readCsvExamples(const std::filesystem::path& file, const cluster::CsvSpec& spec,
                            int64_t width, const TrainedColumns* trained = nullptr);

}  // namespace dtf::data
