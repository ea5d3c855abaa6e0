#pragma once

// The losses that training minimizes.

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

// Returns the terms whose mean is the loss. `output` is the last layer's, float32 [batch, units];
// `labels` are float32 targets t of the same shape, or classes [batch]. For classes t is the
// one-hot row, or with one unit the class itself, 0 or 1. sparse_categorical_crossentropy requires
// classes:
//   sparse_categorical_crossentropy  SparseSoftmaxCrossEntropyWithLogits, one for each example;
//                     smoothed: against t * (1 - s) + s / units (Szegedy et al., CVPR 2016)
//   binary_crossentropy  SigmoidCrossEntropyWithLogits against t, one for each unit of each
//                     example; smoothed: against t * (1 - s) + s / 2
//   mean_squared_error, mean_absolute_error  (output - t)^2, |output - t|, likewise
//   huber             d^2 / 2 up to |d| = delta, a line beyond, with d = output - t (Huber, 1964)
//   hinge             max(0, 1 - (2t - 1) * output): one linear SVM for each class
// `tensor` has no terms (DTF_CHECK): ops of the model compute that loss.
// Each term is multiplied by the weight of its class, or by 1 + (positive_weight - 1) * t. The mean
// divides by the number of terms, not by the weights, like Keras' class_weight: so the workers'
// losses average to the loss of all examples. An evaluation's loss is weighted likewise, to compare
// both.
graph::Output lossTerms(graph::Builder& ops, const LossSpec& loss, graph::Output output,
                        graph::Output labels);

}  // namespace dtf::model
