#include "common/train/parameter_binding.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"

namespace dtf::train {

namespace {

// Returns the rows from `first` on, below `first` + `count`, of the ascending rows `all`.
std::span<const uint32_t> rowsWithin(std::span<const uint32_t> all, uint64_t first,
                                     uint64_t count) {
  const auto begin = std::ranges::lower_bound(all, first);
  const auto end = std::ranges::lower_bound(all, first + count);
  return {begin, end};
}

}  // namespace

ParameterBinding::ParameterBinding(const arena::ParameterLayout& layout,
                                   exchange::ExchangeClient& client, DeviceVariables* kept)
    : client_(client),
      kept_(kept),
      places_(layout.variables.size()),
      values_(layout.variables.size()) {
  for (uint32_t task = 0; task < layout.shards.size(); ++task)
    for (const arena::Slice& slice : layout.shards[task].slices) {
      DTF_CHECK(slice.variable < places_.size());
      DTF_CHECK(slice.offset + slice.count <= layout.shards[task].elements);
      places_[slice.variable].parts.push_back({task, slice});
    }
  for (size_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    DTF_CHECK(!place.parts.empty());
    std::ranges::sort(place.parts, {}, [](const Part& part) { return part.slice.begin; });
    const arena::VariableInfo& variable = layout.variables[i];
    place.elements = static_cast<size_t>(variable.shape.elements());
    place.moves = variable.momentum.has_value();
    if (variable.is_sparse)
      place.sparse.emplace(static_cast<uint64_t>(variable.shape.dim(0)),
                           arena::rowElements(variable.shape));
    if (!isSplit(place)) continue;
    place.value = Buffer(place.elements * sizeof(float));
    if (!place.sparse) place.gradient = Buffer(place.elements * sizeof(float));
  }
  if (std::ranges::any_of(layout.variables, &arena::VariableInfo::is_sparse))
    for (uint32_t task = 0; task < layout.shards.size(); ++task) addSparseShard(layout, task);
}

void ParameterBinding::addSparseShard(const arena::ParameterLayout& layout, uint32_t ps_task) {
  SparseShard& shard =
      sparse_.emplace_back(SparseShard{arena::GradientLayout(layout, ps_task), {}, {}, {}, {}, {}});
  for (const arena::Slice& slice : layout.shards[ps_task].slices) {
    const arena::VariableInfo& variable = layout.variables[slice.variable];
    if (!variable.is_sparse) continue;
    shard.variables.push_back(slice.variable);
    shard.first_rows.push_back(
        static_cast<uint32_t>(slice.begin / arena::rowElements(variable.shape)));
  }
}

void ParameterBinding::gatherValues() {
  shows_aside_ = false;
  values_are_old_ = kept_ != nullptr;
  has_only_wanted_ = std::exchange(wants_rows_, false);
  if (kept_ == nullptr) gather(exchange::Values::kParameters, has_only_wanted_);
}

void ParameterBinding::gatherAgain() {
  if (!std::exchange(shows_aside_, false)) return;
  values_are_old_ = kept_ != nullptr;
  if (kept_ == nullptr) gather(exchange::Values::kParameters, has_only_wanted_);
}

void ParameterBinding::wantRows(std::span<const optimizer::LookUp> look_ups) {
  DTF_CHECK(look_ups.size() == places_.size());
  for (size_t variable = 0; variable < look_ups.size(); ++variable) {
    Place& place = places_[variable];
    const optimizer::LookUp& of = look_ups[variable];
    DTF_CHECK(place.sparse.has_value() == (of.ids != nullptr));
    if (!place.sparse) continue;
    optimizer::findRows(of.dtype, of.ids, of.count, place.sparse->tableRows(), place.wanted,
                        spare_);
  }
  sendWanted();
}

void ParameterBinding::wantNoRows() {
  for (Place& place : places_) place.wanted.clear();
  sendWanted();
}

// Requests from each ps the rows that it holds.
void ParameterBinding::sendWanted() {
  wants_rows_ = true;
  for (uint32_t task = 0; task < sparse_.size(); ++task) {
    SparseShard& shard = sparse_[task];
    shard.wanted.counts.clear();
    shard.wanted.ids.clear();
    for (size_t i = 0; i < shard.variables.size(); ++i) {
      const uint32_t first = shard.first_rows[i];
      const std::span<const uint32_t> rows =
          rowsWithin(places_[shard.variables[i]].wanted, first, shard.layout.sparse()[i].rows);
      shard.wanted.counts.push_back(static_cast<uint32_t>(rows.size()));
      for (const uint32_t row : rows) shard.wanted.ids.push_back(row - first);
    }
    client_.setRows(exchange::RowsOf::kParameters, task, shard.wanted);
  }
}

void ParameterBinding::bringWhole() {
  if (client_.traits().has_whole && !has_only_wanted_) return;
  client_.pull(exchange::Values::kWhole);
  shows_aside_ = true;
  gather(exchange::Values::kWhole);
}

std::span<const float* const> ParameterBinding::values() {
  if (std::exchange(values_are_old_, false)) gather(exchange::Values::kParameters);
  return values_;
}

void ParameterBinding::gatherAverages() {
  values_are_old_ = false;
  shows_aside_ = true;
  gather(exchange::Values::kAverages);
}

void ParameterBinding::gather(exchange::Values what, bool only_wanted) {
  for (size_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    if (!isSplit(place)) {
      values_[i] = client_.view(what, place.parts[0].ps_task) + place.parts[0].slice.offset;
      continue;
    }
    for (const Part& part : place.parts) {
      const float* const from = client_.view(what, part.ps_task) + part.slice.offset;
      if (only_wanted && place.sparse)
        copyWanted(place, part.slice, from);
      else
        std::memcpy(place.value.as<float>() + part.slice.begin, from,
                    part.slice.count * sizeof(float));
    }
    values_[i] = place.value.as<float>();
  }
}

// Copies the requested rows of a part; a part has whole rows.
void ParameterBinding::copyWanted(Place& place, const arena::Slice& slice, const float* from) {
  const uint64_t elements = place.sparse->rowElements();
  const auto first = static_cast<uint32_t>(slice.begin / elements);
  const auto count = static_cast<uint32_t>(slice.count / elements);
  for (const uint32_t row : rowsWithin(place.wanted, first, count))
    std::copy_n(from + (row - first) * elements, elements,
                place.value.as<float>() + row * elements);
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

void ParameterBinding::setGradient(uint32_t variable, const optimizer::LookUp& look_up) {
  places_.at(variable).sparse.value().set(look_up);
}

void ParameterBinding::setNoGradients() {
  DTF_CHECK(kept_ == nullptr);
  for (uint32_t i = 0; i < variables(); ++i) {
    Place& place = places_[i];
    if (place.sparse) {
      place.sparse->set({});
    } else if (place.moves) {
      std::copy_n(value(i), place.elements, gradient(i));
    } else {
      std::fill_n(gradient(i), place.elements, 0.0f);
    }
  }
}

std::span<float> ParameterBinding::gradientValues(uint32_t variable) {
  Place& place = places_.at(variable);
  if (place.sparse) return place.sparse->values();
  return {gradient(variable), place.elements};
}

// Scatters rows first: making room for them may move the dense gradients.
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

// Writes the rows that the ps holds, numbered from its first one.
void ParameterBinding::scatterRows(uint32_t ps_task, SparseShard& shard) {
  const std::vector<arena::SparseSlice>& slices = shard.layout.sparse();
  arena::RowSet& pushed = shard.pushed;
  shard.rows.clear();
  pushed.counts.clear();
  pushed.ids.clear();
  for (size_t i = 0; i < slices.size(); ++i) {
    const std::span<const uint32_t> all = places_[shard.variables[i]].sparse->rows();
    const uint32_t first = shard.first_rows[i];
    shard.rows.push_back(rowsWithin(all, first, slices[i].rows));
    pushed.counts.push_back(static_cast<uint32_t>(shard.rows.back().size()));
    for (const uint32_t row : shard.rows.back()) pushed.ids.push_back(row - first);
  }
  client_.setRows(exchange::RowsOf::kGradient, ps_task, pushed);
  for (size_t i = 0; i < slices.size(); ++i) {
    const optimizer::SparseGradient& gradient = *places_[shard.variables[i]].sparse;
    const std::span<const uint32_t> rows = shard.rows[i];
    float* const at = client_.gradients(ps_task) + shard.layout.rowsAt(pushed.counts, i);
    const auto skipped = static_cast<size_t>(rows.data() - gradient.rows().data());
    std::ranges::copy(gradient.values().subspan(skipped * gradient.rowElements(),
                                                rows.size() * gradient.rowElements()),
                      at + rows.size());
  }
}

}  // namespace dtf::train
