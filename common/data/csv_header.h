#pragma once

// The header of a table in text: the names of its columns, and the columns that a job reads.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "common/cluster/data_spec.h"
#include "common/data/csv_categories.h"
#include "common/data/csv_columns.h"
#include "common/data/csv_records.h"
#include "common/data/dataset.h"

namespace dtf::data {

// The columns of a table, from its first line.
struct CsvHeader {
  PartSpec features;
  PartSpec labels;
  std::vector<std::string> columns;  // the names of all
  TrainedColumns trained;            // the model's inputs and targets, as in the file
};

// Blocks: on the disk, shortly.
// Errors: kBadData naming the file: missing, empty, no text; kBadConfig for a column that is
// missing or listed twice, or files with different headers.
CsvHeader readCsvHeader(std::span<const std::filesystem::path> files, const cluster::CsvSpec& spec);

// Returns missingColumns() of the first file that lacks one.
// Blocks, errors: as readCsvHeader().
std::vector<yaml::ErrorAt> missingColumns(std::span<const std::filesystem::path> files,
                                          const cluster::CsvSpec& spec);

// Returns the names of the columns of `file`; `records` is at its first record. Without a header
// the names are the numbers from 1.
// Errors: kBadData for records joined to the header by a stray quote; kBadConfig for a header of
// numbers alone that the job doesn't confirm.
std::vector<std::string> readNames(const std::string& file, const CsvRecords& records,
                                   const cluster::CsvSpec& spec);

// Checks that the fields of a table that has several columns aren't divided by another common
// delimiter, and that it is no libsvm file; `records` is at its first record.
// Errors: kBadConfig naming both delimiters, or the format.
void checkForm(const std::string& file, const CsvRecords& records, const cluster::CsvSpec& spec);

// The names of the feature columns, in order.
std::vector<std::string> featureNames(const CsvColumns& columns);

// The features of a record, prepared.
PartSpec featuresOf(const CsvColumns& columns, const cluster::CsvSpec& spec);
PartSpec labelsOf(const CsvColumns& columns);

// Returns a reader for each categorical column. Without other features the first categories are the
// features. Together they keep as much in memory as one part.
std::vector<CategoryReader> categoryReaders(const cluster::CsvSpec& spec);

}  // namespace dtf::data
