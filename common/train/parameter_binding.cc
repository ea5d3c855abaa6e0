#include "common/train/parameter_binding.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"

namespace dtf::train {

ParameterBinding::ParameterBinding(const ps::ParameterLayout& layout, ps::ParameterClient& client)
    : client_(client), places_(layout.variables.size()), values_(layout.variables.size()) {
  for (uint32_t task = 0; task < layout.shards.size(); ++task)
    for (const ps::Slice& slice : layout.shards[task].slices) {
      DTF_CHECK(slice.variable < places_.size());
      DTF_CHECK(slice.offset + slice.count <= layout.shards[task].elements);
      places_[slice.variable].parts.push_back({task, slice});
    }
  for (size_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    DTF_CHECK(!place.parts.empty());
    std::ranges::sort(place.parts, {}, [](const Part& part) { return part.slice.begin; });
    if (!isSplit(place)) continue;
    const auto bytes = static_cast<size_t>(layout.variables[i].shape.elements()) * sizeof(float);
    place.value = Buffer(bytes);
    place.gradient = Buffer(bytes);
  }
}

void ParameterBinding::gatherValues() {
  gather(&ps::ParameterClient::parameters);
}

void ParameterBinding::gatherAverages() {
  gather(&ps::ParameterClient::averages);
}

void ParameterBinding::gather(Arena arena) {
  for (size_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    if (!isSplit(place)) {
      values_[i] = (client_.*arena)(place.parts[0].ps_task) + place.parts[0].slice.offset;
      continue;
    }
    for (const Part& part : place.parts)
      std::memcpy(place.value.as<float>() + part.slice.begin,
                  (client_.*arena)(part.ps_task) + part.slice.offset,
                  part.slice.count * sizeof(float));
    values_[i] = place.value.as<float>();
  }
}

float* ParameterBinding::gradient(uint32_t variable) {
  DTF_CHECK(variable < places_.size());
  Place& place = places_[variable];
  if (isSplit(place)) return place.gradient.as<float>();
  return client_.gradients(place.parts[0].ps_task) + place.parts[0].slice.offset;
}

void ParameterBinding::scatterGradients() {
  for (const Place& place : places_) {
    if (!isSplit(place)) continue;
    for (const Part& part : place.parts)
      std::memcpy(client_.gradients(part.ps_task) + part.slice.offset,
                  place.gradient.as<float>() + part.slice.begin, part.slice.count * sizeof(float));
  }
}

}  // namespace dtf::train
