#pragma once

// The numeric columns of a table on their way to the model's features: fill, log1p, standardize,
// and the indicators of missing values behind all columns.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/cluster/data_spec.h"

namespace dtf::data {

// Returns the settings of each feature column, without learned numbers: its own entry in `numeric`,
// that of "*", or none.
// Errors: yaml::ErrorAt of kBadConfig at an entry for a column that is no feature.
std::vector<cluster::PreparedColumn> preparedColumns(
    const std::vector<std::string>& features, const std::vector<cluster::NumericColumn>& numeric);

// The number of features: the columns, and an indicator for some.
int64_t preparedWidth(std::span<const cluster::PreparedColumn> columns);

// Appends the features of a record. `record`: the number of each column; NaN: its value is missing.
// The columns are learned where their settings ask for it. A number of a column with log1p is above
// -1.
void prepareRecord(std::span<const cluster::PreparedColumn> columns, std::span<const float> record,
                   std::vector<float>& features);

}  // namespace dtf::data
