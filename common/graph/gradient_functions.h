#pragma once

// Helpers of the files that fill standardGradients(). Internal to common/graph.

#include <optional>
#include <vector>

#include "common/graph/gradients.h"

namespace dtf::graph {

using Gradients = std::vector<std::optional<Output>>;

Output dyOf(const GradientRequest& request);  // the gradient of output 0, which must be set
Output in(const GradientRequest& request, size_t index);
Output yOf(const GradientRequest& request);  // output 0 itself

void addMathGradients(GradientTable& table);     // gradients_math.cc
void addControlGradients(GradientTable& table);  // gradients_control.cc
void addImageGradients(GradientTable& table);    // gradients_image.cc
void addLayerGradients(GradientTable& table);    // gradients_layers.cc

}  // namespace dtf::graph
