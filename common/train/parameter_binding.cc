#include "common/train/parameter_binding.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"

namespace dtf::train {

ParameterBinding::ParameterBinding(const ps::ParameterLayout& layout, ps::ParameterClient& client,
                                   DeviceVariables* kept)
    : client_(client),
      kept_(kept),
      places_(layout.variables.size()),
      values_(layout.variables.size()) {
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
    const ps::VariableInfo& variable = layout.variables[i];
    place.elements = static_cast<size_t>(variable.shape.elements());
    if (variable.is_sparse)
      place.sparse.emplace(static_cast<uint64_t>(variable.shape.dim(0)),
                           ps::rowElements(variable.shape));
    if (!isSplit(place)) continue;
    place.value = Buffer(place.elements * sizeof(float));
    if (!place.sparse) place.gradient = Buffer(place.elements * sizeof(float));
  }
  if (std::ranges::any_of(layout.variables, &ps::VariableInfo::is_sparse))
    for (uint32_t task = 0; task < layout.shards.size(); ++task) addSparseShard(layout, task);
}

void ParameterBinding::addSparseShard(const ps::ParameterLayout& layout, uint32_t ps_task) {
  SparseShard& shard =
      sparse_.emplace_back(SparseShard{ps::GradientLayout(layout, ps_task), {}, {}, {}, {}});
  for (const ps::Slice& slice : layout.shards[ps_task].slices) {
    const ps::VariableInfo& variable = layout.variables[slice.variable];
    if (!variable.is_sparse) continue;
    shard.variables.push_back(slice.variable);
    shard.first_rows.push_back(
        static_cast<uint32_t>(slice.begin / ps::rowElements(variable.shape)));
  }
}

void ParameterBinding::gatherValues() {
  values_are_old_ = kept_ != nullptr;
  if (kept_ == nullptr) gather(&ps::ParameterClient::parameters);
}

std::span<const float* const> ParameterBinding::values() {
  if (std::exchange(values_are_old_, false)) gather(&ps::ParameterClient::parameters);
  return values_;
}

void ParameterBinding::gatherAverages() {
  values_are_old_ = false;
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

void ParameterBinding::bringGradients() {
  if (std::exchange(gradients_are_old_, false)) kept_->readGradients(client_.gradients(0));
}

float* ParameterBinding::gradient(uint32_t variable) {
  DTF_CHECK(variable < places_.size());
  bringGradients();
  Place& place = places_[variable];
  DTF_CHECK(!place.sparse);
  if (isSplit(place)) return place.gradient.as<float>();
  return client_.gradients(place.parts[0].ps_task) + place.parts[0].slice.offset;
}

void ParameterBinding::setGradient(uint32_t variable, const LookUp& look_up) {
  places_.at(variable).sparse.value().set(look_up);
}

std::span<float> ParameterBinding::gradientValues(uint32_t variable) {
  Place& place = places_.at(variable);
  if (place.sparse) return place.sparse->values();
  return {gradient(variable), place.elements};
}

// Makes room first: that may move the dense gradients with it.
void ParameterBinding::scatterGradients() {
  for (uint32_t task = 0; task < sparse_.size(); ++task) scatterRows(task, sparse_[task]);
  for (uint32_t i = 0; i < variables(); ++i)
    if (!places_[i].sparse) scatterGradient(i);
}

void ParameterBinding::scatterGradient(uint32_t variable) {
  const Place& place = places_.at(variable);
  DTF_CHECK(!place.sparse);
  if (!isSplit(place)) return;
  for (const Part& part : place.parts)
    std::memcpy(client_.gradients(part.ps_task) + part.slice.offset,
                place.gradient.as<float>() + part.slice.begin, part.slice.count * sizeof(float));
}

// Each ps gets the rows that it holds, counted from its first one.
void ParameterBinding::scatterRows(uint32_t ps_task, SparseShard& shard) {
  const std::vector<ps::SparseSlice>& slices = shard.layout.sparse();
  shard.rows.clear();
  shard.counts.clear();
  for (size_t i = 0; i < slices.size(); ++i) {
    const std::span<const uint32_t> all = places_[shard.variables[i]].sparse->rows();
    const uint64_t first = shard.first_rows[i];
    const auto begin = std::ranges::lower_bound(all, first);
    const auto end = std::ranges::lower_bound(all, first + slices[i].rows);
    shard.rows.emplace_back(begin, end);
    shard.counts.push_back(static_cast<uint32_t>(end - begin));
  }
  client_.setRows(ps_task, shard.counts);
  for (size_t i = 0; i < slices.size(); ++i) {
    const SparseGradient& gradient = *places_[shard.variables[i]].sparse;
    const std::span<const uint32_t> rows = shard.rows[i];
    float* const at = client_.gradients(ps_task) + shard.layout.rowsAt(shard.counts, i);
    std::ranges::transform(rows, reinterpret_cast<uint32_t*>(at),
                           [first = shard.first_rows[i]](uint32_t row) { return row - first; });
    const auto skipped = static_cast<size_t>(rows.data() - gradient.rows().data());
    std::ranges::copy(gradient.values().subspan(skipped * gradient.rowElements(),
                                                rows.size() * gradient.rowElements()),
                      at + rows.size());
  }
}

}  // namespace dtf::train
