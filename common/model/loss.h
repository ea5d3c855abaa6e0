#pragma once

// What training makes small.

#include "common/graph/builder.h"
#include "common/model/model_spec.h"

namespace dtf::model {

// Of each element that the mean is taken over. `output` is the last layer's, float32 [batch, units];
// `labels` uint8 [batch].
//   softmax_cross_entropy  SparseSoftmaxCrossEntropyWithLogits, one for each example
//   mse                    (output - one hot)^2, one for each unit of each example
//   sigmoid_cross_entropy  SigmoidCrossEntropyWithLogits against one hot, likewise
graph::Output lossTerms(graph::Builder& ops, Loss loss, graph::Output output, graph::Output labels);

}  // namespace dtf::model
