#pragma once

// Checks that data fit a model, by their headers alone, and gives remedies for error messages.

#include <cstdint>
#include <string>

#include "common/cluster/data_spec.h"
#include "common/data/csv_columns.h"
#include "common/model/model_graph.h"
#include "common/tensor/shape.h"

namespace dtf::train {

// Returns the feature columns of a table, for messages: "a, b, c", "a, b, ..., z".
std::string featureColumns(const data::TrainedColumns& columns, const cluster::CsvSpec& spec);

// Returns a remedy for features of the wrong shape; empty if there is no special one. `columns`:
// from featureColumns(); empty: the data are no table. `to_train`: false for evaluation data.
std::string shapeRemedy(const std::string& columns, const Shape& shape, bool to_train);

// Checks that the output layer has a unit for each class; one unit is enough for two classes.
// Errors: kBadConfig at the layer.
void checkClassCount(const model::ModelOutput& output, const std::string& name, int64_t classes);

}  // namespace dtf::train
