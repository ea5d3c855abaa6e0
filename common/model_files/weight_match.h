#pragma once

// Which tensor of a file is which variable of a model, with its numbers in dtf's order.

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
  std::vector<std::optional<MatchedWeights>> found;  // for each that is wanted
  std::vector<std::string> unused;                   // "fc/weight [10]: there is no such variable"
};

// By name and shape. Names that differ only in how programs write them are the same:
// "conv1.weight", "conv1/kernel" and "conv1/weights"; "conv1.bias" and "conv1/biases"; of norms
// "bn.weight" and "bn/gamma", "bn.bias" and "bn/beta", "bn.running_mean" and "bn/moving_mean",
// "bn.running_var" and "bn/moving_variance"; of residual layers "downsample" and "shortcut". The
// filter of a depthwise convolution may be [height, width, 1, channels * multiplier]. What lies
// otherwise than dtf's is turned.
// Errors: kBadConfig naming the tensor where it can't be known how its rows go, and a variable
// whose tensor is there, but isn't read.
WeightMatch matchWeights(const WantedModel& wanted, const FoundWeights& weights);

}  // namespace dtf::model_files
