#include "common/model_files/weight_order.h"

#include "common/base/check.h"

namespace dtf::model_files {

Shape channelsFirst(const Shape& filter) {
  DTF_CHECK(filter.rank() == 4);
  return {filter.dim(3), filter.dim(2), filter.dim(0), filter.dim(1)};
}

std::vector<float> channelsFirst(const Shape& filter, std::span<const float> values) {
  DTF_CHECK(filter.rank() == 4 && values.size() == static_cast<size_t>(filter.elements()));
  const auto positions = static_cast<size_t>(filter.dim(0) * filter.dim(1));
  const auto channels = static_cast<size_t>(filter.dim(2));
  const auto filters = static_cast<size_t>(filter.dim(3));
  std::vector<float> turned(values.size());
  for (size_t position = 0; position < positions; ++position)
    for (size_t channel = 0; channel < channels; ++channel)
      for (size_t f = 0; f < filters; ++f)
        turned[(f * channels + channel) * positions + position] =
            values[(position * channels + channel) * filters + f];
  return turned;
}

Shape channelsLast(const Shape& filter) {
  DTF_CHECK(filter.rank() == 4);
  return {filter.dim(2), filter.dim(3), filter.dim(1), filter.dim(0)};
}

std::vector<float> channelsLast(const Shape& filter, std::span<const float> values) {
  DTF_CHECK(filter.rank() == 4 && values.size() == static_cast<size_t>(filter.elements()));
  if (values.empty()) return {};
  const auto filters = static_cast<size_t>(filter.dim(0));
  const auto channels = static_cast<size_t>(filter.dim(1));
  const auto positions = static_cast<size_t>(filter.dim(2) * filter.dim(3));
  std::vector<float> turned(values.size());
  for (size_t f = 0; f < filters; ++f)
    for (size_t channel = 0; channel < channels; ++channel)
      for (size_t position = 0; position < positions; ++position)
        turned[(position * channels + channel) * filters + f] =
            values[(f * channels + channel) * positions + position];
  return turned;
}

}  // namespace dtf::model_files
