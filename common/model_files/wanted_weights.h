#pragma once

// What a model's variables are to its layers: what has to be known of one before numbers of another
// program, whose matrices, filters and images lie otherwise, can become its values.

#include <cstdint>
#include <string>
#include <vector>

#include "common/model/model_spec.h"
#include "common/tensor/shape.h"

namespace dtf::model_files {

enum class WeightUse : uint8_t {
  kVector,  // of one dimension, whatever reads it
  kMatrix,  // [inputs, units], of a product
  kFilter,  // [height, width, channels, filters], of a convolution
  kTable,   // of rows that are looked up
  kOther,
};

// In which order a variable's first dimension meets the numbers of a flattened image, where it
// does.
struct RowOrder {
  bool known = true;  // false: reshaped in a way that other programs needn't share
  // For each row of dtf, which goes by height, width, channel: the row's place where they go by
  // channel, height, width. Empty: both are the same.
  std::vector<int64_t> channels_first;
  bool operator==(const RowOrder&) const = default;
};

// A variable that looks for its values.
struct WantedWeights {
  std::string name;
  Shape shape;
  WeightUse use = WeightUse::kVector;
  RowOrder rows = {};
  bool is_depthwise = false;  // a filter of each channel alone
};

struct WantedModel {
  std::vector<int64_t> input_shape;      // of one example
  std::vector<WantedWeights> variables;  // in the order of the model
};

// Errors: as model::buildEvaluationGraph().
WantedModel wantedWeights(const model::ModelSpec& model);

}  // namespace dtf::model_files
