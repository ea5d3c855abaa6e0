#pragma once

// The training graph of an epoch's short last batch. It may have one number for each channel of a
// batch norm, which is an error only in whole batches.

#include <cstdint>

#include "common/model/model_graph.h"

namespace dtf::model {

// Like buildTrainingGraph().
ModelGraph buildShortTrainingGraph(const ModelSpec& model, int64_t batch_size,
                                   TableGradient table_gradient);

}  // namespace dtf::model
