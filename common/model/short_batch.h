#pragma once

// The graph of a batch that is short because an epoch ends there. It may have so few examples that
// a batch norm learns nothing from them, which is a mistake of the file in whole batches alone.

#include <cstdint>

#include "common/model/model_graph.h"

namespace dtf::model {

// As buildTrainingGraph().
ModelGraph buildShortTrainingGraph(const ModelSpec& model, int64_t batch_size,
                                   TableGradient table_gradient);

}  // namespace dtf::model
