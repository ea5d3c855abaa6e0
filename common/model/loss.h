#pragma once

// What training makes small.

#include <vector>

#include "common/graph/builder.h"
#include "common/model/model_spec.h"
#include "common/yaml/key_table.h"
#include "common/yaml/report.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::model {

std::string_view nameOf(Loss loss);  // its word in the file

// Mistakes go into the report.
LossSpec readLoss(const yaml::YamlNode& node, yaml::Report& report);
std::vector<const yaml::Table*> lossTables();

// Of each element that the mean is taken over. `output` is the last layer's, float32 [batch,
// units]; `labels` are float32 targets t of the same shape, or classes [batch]. Then t is the
// one-hot row of a class, or, of one unit, the class itself, 0 or 1.
// sparse_categorical_crossentropy wants classes:
//   sparse_categorical_crossentropy  SparseSoftmaxCrossEntropyWithLogits, one for each example;
//                     smoothed: against t * (1 - s) + s / units (Szegedy et al., CVPR 2016)
//   binary_crossentropy  SigmoidCrossEntropyWithLogits against t, one for each unit of each
//                     example; smoothed: against t * (1 - s) + s / 2
//   mean_squared_error, mean_absolute_error  (output - t)^2, |output - t|, likewise
//   huber             d^2 / 2 up to |d| = delta, a line beyond, with d = output - t (Huber, 1964)
//   hinge             max(0, 1 - (2t - 1) * output): one linear SVM for each class
// Each times its weight, that of its class, or 1 + (positive_weight - 1) * t. The mean counts
// terms, not weights, as Keras' class_weight does: so the mean of the workers' losses is that of
// all examples. An evaluation's loss is weighted likewise, so that both can be compared.
graph::Output lossTerms(graph::Builder& ops, const LossSpec& loss, graph::Output output,
                        graph::Output labels);

}  // namespace dtf::model
