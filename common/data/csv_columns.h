#pragma once

// Chooses the columns of a table to read, and their use: by the names in its first line, or by
// number, and by the job's file.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/cluster/data_spec.h"
#include "common/yaml/error_at.h"

namespace dtf::data {

// Places of fields in a record. Value type.
struct CsvColumns {
  std::vector<std::string> names;  // "price", or "3" where there is no header
  std::vector<size_t> features;
  std::vector<size_t> targets;
  std::optional<size_t> label;
  std::vector<std::vector<size_t>> categories;  // of each of CsvSpec::categorical
  std::optional<size_t> split = {};             // CsvSpec::split_column
  // The targets of a table to predict from, if it has all of them.
  std::vector<size_t> truths = {};
};

// The columns that a model was trained on, by name, as in a DataSignature. Value type.
struct TrainedColumns {
  std::vector<std::string> features;
  std::vector<std::vector<std::string>> categories;
  size_t all = 0;                         // columns of the table
  std::vector<std::string> targets = {};  // or the label
};

// Returns the columns that `spec` names and `names` lacks or has twice. Each error stands at the
// column's place in the job's file, if it has one there, and suggests a similar name.
std::vector<yaml::ErrorAt> missingColumns(const std::string& file,
                                          const std::vector<std::string>& names,
                                          const cluster::CsvSpec& spec);

// Chooses the columns of a table to learn from. `names` are its first record, `file` is for
// messages.
// Errors: kBadConfig for a column that is missing (the first of missingColumns()) or listed twice,
// and for two of one name.
CsvColumns chooseColumns(const std::string& file, std::vector<std::string> names,
                         const cluster::CsvSpec& spec);

// Chooses the columns of a table to predict from by the names in `trained`, in any place. It takes
// no numbers: another table may have another column in that place.
// Errors: kBadConfig naming the missing columns.
CsvColumns chooseTrained(const std::string& file, std::vector<std::string> names,
                         const TrainedColumns& trained);

// Does the same without a header, by the numbers in `trained`. The table has all columns of the
// trained one; or lacks the label or targets, and the columns after them have moved up; or has only
// the features, in ascending order, if the model reads nothing else.
// Errors: kBadConfig for another number of columns.
CsvColumns chooseNumbered(const std::string& file, std::vector<std::string> names,
                          const TrainedColumns& trained);

// Does the same for a job without categories, perhaps without its training data: chooses the
// columns that `spec` lists, or all if there are `width` of them, or all but the label and the
// targets.
// Errors: kBadConfig.
CsvColumns chooseFeatures(const std::string& file, std::vector<std::string> names,
                          const cluster::CsvSpec& spec, int64_t width);

// The places of the columns that `wanted` names, each once: a word is a name, a number from 1, or
// several of them with commas between.
// Errors: kBadConfig for one that isn't there, with the columns there are.
std::vector<size_t> namedColumns(const std::string& file, const CsvColumns& columns,
                                 std::span<const std::string> wanted);

// Checks that the first line is a header. A record in its place would never be read, and nobody
// would know. Columns may be named 0, 1, 2.
// Errors: kBadConfig.
void checkHeader(const std::string& file, const CsvColumns& columns, const cluster::CsvSpec& spec);

}  // namespace dtf::data
