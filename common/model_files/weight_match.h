#pragma once

// Which tensor of a file is which variable of a model.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/model_files/weight_reader.h"

namespace dtf::model_files {

// A variable that looks for its values.
struct WantedWeights {
  std::string name;
  Shape shape;
};

struct WeightMatch {
  std::vector<const NamedTensor*> found;  // for each that is wanted; nullptr: none. Borrowed
  std::vector<std::string> unused;        // "fc/weight [10]: there is no such variable"
};

// By name and shape. Names that differ only in how programs write them are the same:
// "conv1.weight", "conv1/kernel" and "conv1/weights"; "conv1.bias" and "conv1/biases". The filter of a
// depthwise convolution may be [height, width, 1, channels * multiplier].
WeightMatch matchWeights(std::span<const WantedWeights> wanted, const FoundWeights& weights);

}  // namespace dtf::model_files
