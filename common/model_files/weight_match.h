#pragma once

// Matches the tensors of a file with a model's variables, and brings their numbers to dtf's order.

#include <optional>
#include <string>
#include <vector>

#include "common/model_files/wanted_weights.h"
#include "common/model_files/weight_reader.h"

namespace dtf::model_files {

// Value type; move-only.
struct MatchedWeights {
  Tensor value;      // of the variable's shape
  std::string from;  // "fc.weight, transposed"
};

struct WeightMatch {
  std::vector<std::optional<MatchedWeights>> found;  // for each wanted variable
  std::vector<std::string> unused;                   // "fc/w [10]: the model has no such variable"
};

// Matches by name and shape. Names that programs only write differently are the same:
// "conv1.weight", "conv1/kernel" and "conv1/weights"; "conv1.bias" and "conv1/biases"; in norms
// "bn.weight" and "bn/gamma", "bn.bias" and "bn/beta", "bn.running_mean" and "bn/moving_mean",
// "bn.running_var" and "bn/moving_variance"; in residual layers "downsample" and "shortcut". The
// filter of a depthwise convolution may be [height, width, 1, channels * multiplier]. Tensors in
// another order are turned.
// Errors: kBadConfig naming a tensor if the order of its rows can't be known, and a variable if its
// tensor can't be read.
WeightMatch matchWeights(const WantedModel& wanted, const FoundWeights& weights);

}  // namespace dtf::model_files
