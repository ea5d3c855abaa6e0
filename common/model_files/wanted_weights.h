#pragma once

// How a model's layers use its variables, which must be known to import values from programs with
// another order of matrices, filters and images.

#include <cstdint>
#include <string>
#include <vector>

#include "common/model/model_spec.h"
#include "common/tensor/shape.h"

namespace dtf::model_files {

enum class WeightUse : uint8_t {
  kVector,  // of one dimension
  kMatrix,  // [inputs, units], of a product
  kFilter,  // [height, width, channels, filters], of a convolution
  kTable,   // of rows that are looked up
  kOther,
};

// The order in which the rows of a variable read a flattened image, if they do.
struct RowOrder {
  bool known = true;  // false: reshaped in a way that other programs needn't share
  // For each row, in dtf's order height, width, channel: its place in the order channel, height,
  // width. Empty: both are the same.
  std::vector<int64_t> channels_first;
  bool operator==(const RowOrder&) const = default;
};

// A variable to import values for.
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

// Errors: see model::buildEvaluationGraph().
WantedModel wantedWeights(const model::ModelSpec& model);

}  // namespace dtf::model_files
