#pragma once

#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "common/model_files/weight_reader.h"

namespace dtf::model_files {

inline std::vector<float> countedTo(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

inline std::vector<float> valuesOf(const FoundTensor& tensor) {
  const std::span<const float> values = tensor.value.as<float>();
  return {values.begin(), values.end()};
}

}  // namespace dtf::model_files
