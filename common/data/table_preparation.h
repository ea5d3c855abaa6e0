#pragma once

// The preparation of a table as steps of a signature, and back: a model's numbers and words for
// other data. The steps of features, each with the columns it is for:
//   fill               with: mean, median or value for each; values
//   missing_indicator  further features behind all columns
//   log1p
//   standardize        mean, stddev
// and the `from`, `max_size` and `min_count` of words that are learned.

#include <optional>
#include <vector>

#include "common/cluster/data_spec.h"
#include "common/data/data_signature.h"

namespace dtf::data {

// Returns the steps of the features, empty if they are read as they are. Before the numbers are
// learned, the steps have none.
std::vector<Json> featureSteps(const cluster::CsvSpec& csv);

// Returns the steps of categorical columns `index` of `csv`, and of its label.
std::vector<Json> categorySteps(const cluster::CsvSpec& csv, size_t index);
std::vector<Json> labelSteps(const cluster::CsvSpec& csv);

// Returns the columns of the model's features with their numbers.
// Errors: kBadData for a signature that can't be one of a table's features.
std::vector<cluster::PreparedColumn> preparedFeatures(const DataSignature& model);

// Returns `spec` with the numbers and words of the model, if its settings are the model's; else
// unchanged, so that the signatures differ. Also if `spec` has learned others.
// Errors: as preparedFeatures().
cluster::DatasetSpec withLearnedOf(const DataSignature& model, const cluster::DatasetSpec& spec);

}  // namespace dtf::data
