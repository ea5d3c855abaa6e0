#pragma once

// Whether data fit a model, from their headers alone, and the remedies that messages name where
// they don't.

#include <cstdint>
#include <string>

#include "common/cluster/data_spec.h"
#include "common/data/csv_columns.h"
#include "common/model/model_graph.h"
#include "common/tensor/shape.h"

namespace dtf::train {

// Returns the columns of a table that are its features, for messages: "a, b, c", "a, b, ..., z".
std::string featureColumns(const data::TrainedColumns& columns, const cluster::CsvSpec& spec);

// Returns what to do about features of another shape than the model's. `columns`: those of
// featureColumns(); empty: the data are no table. Empty: there is nothing special to say.
std::string shapeRemedy(const std::string& columns, const Shape& shape, bool to_train);

// Errors: kBadConfig at the layer for more classes than it has units; one unit tells two apart.
void checkClassCount(const model::ModelOutput& output, const std::string& name, int64_t classes);

}  // namespace dtf::train
