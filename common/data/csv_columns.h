#pragma once

// Which columns of a table are read, and as what: from the names in its first line, or their
// numbers, and what the job's file says of them.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/cluster/data_spec.h"

namespace dtf::data {

// Places of fields in a record. Value type.
struct CsvColumns {
  std::vector<std::string> names;  // "price", or "3" where there is no header
  std::vector<size_t> features;
  std::vector<size_t> targets;
  std::optional<size_t> label;
  std::vector<std::vector<size_t>> categories;  // of each of CsvSpec::categorical
  // The targets, in a table to predict from that has all of them.
  std::vector<size_t> truths = {};
};

// What a model was trained on, by the names of the columns, as a DataSignature has them. Value
// type.
struct TrainedColumns {
  std::vector<std::string> features;
  std::vector<std::vector<std::string>> categories;
  size_t all = 0;                         // columns of the table
  std::vector<std::string> targets = {};  // or the label
};

// Of a table to learn from, whose first record has `names`; `file` is what messages call it.
// Errors: kBadConfig for a column that isn't there, or is asked for twice, and for two of one name.
CsvColumns chooseColumns(const std::string& file, std::vector<std::string> names,
                         const cluster::CsvSpec& spec);

// Of one to predict of: the columns of the names `trained`, wherever they stand. Only by name: a
// number would be a place, and another table may have something else there.
// Errors: kBadConfig for one that isn't there.
CsvColumns chooseTrained(const std::string& file, std::vector<std::string> names,
                         const TrainedColumns& trained);

// The same without a header: the columns of the numbers `trained`, of a table that has all columns
// of the trained one, or lacks the label and the targets: the columns behind them have moved up; or
// has the features alone, where these are all that the model reads, in the order of the table.
// Errors: kBadConfig for another number of columns.
CsvColumns chooseNumbered(const std::string& file, std::vector<std::string> names,
                          const TrainedColumns& trained);

// The same of a job without categories, whose training data may not be here: the columns that
// `spec` asks for, or all where there are `width` of them, or all but the label and the targets.
// Errors: kBadConfig.
CsvColumns chooseFeatures(const std::string& file, std::vector<std::string> names,
                          const cluster::CsvSpec& spec, int64_t width);

// A first record taken for a header would be lost without a word. Columns may be named 0, 1, 2.
// Errors: kBadConfig.
void checkHeader(const std::string& file, const CsvColumns& columns, const cluster::CsvSpec& spec);

}  // namespace dtf::data
