#pragma once

// The preparation of a table's columns as nodes of an ONNX file, so that it reads the numbers of
// the table, and NaN for a missing one.

#include <span>
#include <string>
#include <vector>

#include "common/cluster/data_spec.h"
#include "common/data/data_signature.h"
#include "common/model_files/onnx_values.h"

namespace dtf::model_files {

// Returns the columns that `signature` (data::encodeSignature(), or empty) prepares; empty: the
// features are read as they are.
// Errors: kBadData for a signature that can't be read, or whose features are not `width`.
std::vector<cluster::PreparedColumn> preparedColumnsOf(const std::string& signature, int64_t width);

// Adds nodes that turn `raw`, float32 [batch, columns], into the features, and returns their name.
std::string addPreparation(OnnxValues& values, std::span<const cluster::PreparedColumn> columns,
                           const std::string& raw);

}  // namespace dtf::model_files
