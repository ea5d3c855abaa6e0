#pragma once

// Tables in text (CSV): features from some columns, one class or some numbers to learn from others.
//
// Files are untrusted. A record that can't be read (too few or many fields, a field that is no number,
// a class that there isn't) costs one record: it is left out, said in the log with its place, and
// counted; too many of them end the reading.

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
  std::vector<std::string> columns;  // the names of the features, then of the targets
  TrainedColumns trained;            // the names of what a model reads
};

// Blocks: on the disk, shortly.
// Errors: kBadData naming the file: missing, empty, no text; kBadConfig for a column that isn't there
// or is asked for twice, or files with different headers.
CsvHeader readCsvHeader(std::span<const std::filesystem::path> files, const cluster::CsvSpec& spec);

struct CsvTable {
  Dataset dataset;
  int64_t bad_records = 0;  // that were left out
};

// Of all files, in order. Their numbers are in memory as long as they are few (growing_block.h).
// Blocks: on the disk; about 10 MB take 0.1 s.
// Errors: as readCsvHeader(); kBadData with file, line and column for the record that is one too many
// (CsvSpec::max_bad_records), and when no good one is left; kCannotWrite without room for many.
CsvTable readCsv(std::span<const std::filesystem::path> files, const cluster::CsvSpec& spec);

// What a model reads of each record.
struct CsvExamples {
  Part features;
  std::vector<Part> categories;  // as Dataset::categories()
};

// Those of a table that needs no label or targets: the columns of the names `trained`, in
// that order wherever they stand, or, without a header, of its numbers. Without `trained`, for a job without categories, the columns that `spec` asks for; as features, where it names none, all others where there
// are `width` of them, or all but the label and the targets.
// Errors: as readCsv(); a bad record ends the reading: each is to have its answer.
CsvExamples readCsvExamples(const std::filesystem::path& file, const cluster::CsvSpec& spec,
                            int64_t width, const TrainedColumns* trained = nullptr);

}  // namespace dtf::data
