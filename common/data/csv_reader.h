#pragma once

// Reads tables in text (CSV): features from some columns, a class or targets from others.
//
// Files are untrusted. A record that can't be read (too few or many fields, a field that is no
// number, an unknown class) is reported with its place; it ends the reading, unless the job's file
// permits so many to be left out (bad_records.h).

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "common/cluster/data_spec.h"
#include "common/data/csv_header.h"
#include "common/data/dataset.h"

namespace dtf::data {

// Reads all files, in order; the preparation of `spec` is learned (DTF_CHECK). Few numbers stay in
// memory, more go to a file (growing_block.h). Blocks: on the disk; about 10 MB take 0.1 s. Errors:
// see readCsvHeader(); kBadData with file, line and column of the first bad records, if there are
// more than CsvSpec::max_bad_records, and when no good one is left; kCannotWrite without room for
// many.
Dataset readCsv(std::span<const std::filesystem::path> files, const cluster::CsvSpec& spec);

// A table before its preparation is learned.
struct UnpreparedTable {
  // One number for each feature column, NaN where it is missing. Words and classes that are learned
  // have numbers in the order in which they appear.
  Dataset data;
  std::vector<cluster::PreparedColumn> features;  // settings; empty: the features need none
  std::vector<std::vector<std::string>> words;    // of each category, if it is learned
  std::vector<std::string> classes;               // if they are learned
};

// Reads all files for the numbers and words that `spec` learns from them.
// Blocks, errors: as readCsv(); kBadData for more words than can be learned.
UnpreparedTable readUnprepared(std::span<const std::filesystem::path> files,
                               const cluster::CsvSpec& spec);

// The parts of each record that a model reads.
struct CsvExamples {
  Part features;
  std::vector<Part> categories;  // as Dataset::categories()
  std::vector<BadRecord> unread = {};
  std::vector<std::string> truths = {};  // as UnlabelledExamples'
  KeptColumns kept = {};                 // likewise
  std::vector<OtherWords> other_words = {};
};

// Reads a table to predict from, which needs no label or targets. chooseTrained() finds the columns
// by their names in `trained`; without a header chooseNumbered() finds them by number. Without
// `trained`, chooseFeatures() takes columns by `spec` and `width`.
// Targets, where the table has them, and the columns that `keep` names (see namedColumns()) are
// returned as text, without the spaces around each field.
// Errors: as readCsv() and namedColumns(); of bad records any number is given, but not all.
CsvExamples readCsvExamples(const std::filesystem::path& file, const cluster::CsvSpec& spec,
                            int64_t width, const TrainedColumns* trained = nullptr,
                            std::span<const std::string> keep = {});

}  // namespace dtf::data
