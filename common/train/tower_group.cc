#include "common/train/tower_group.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/trace.h"
#include "common/ps/gradient_math.h"

namespace dtf::train {

namespace {

// 64 KiB: what a thread adds up stays in its caches until it is divided.
constexpr uint64_t kPieceElements = 16384;

}  // namespace

TowerGroup::TowerGroup(const model::ModelGraph& model, const engine::TaskPart& part,
                       const TowerDevices& devices,
                       const std::vector<const runtime::KeptVariables*>& kept)
    : together_(devices.together), are_kept_(!kept.empty()), targets_(model.variables.size()) {
  DTF_CHECK(!devices.each.empty() && (!are_kept_ || devices.each.size() == kept.size()));
  towers_.reserve(devices.each.size());
  for (uint32_t i = 0; i < devices.each.size(); ++i)
    towers_.emplace_back(model, part, devices.each[i], i, are_kept_ ? kept[i] : nullptr);
  addRows(model);
  if (size() > 1 && !are_kept_) addPieces(model);
}

void TowerGroup::addPieces(const model::ModelGraph& model) {
  for (uint32_t i = 0; i < model.variables.size(); ++i) {
    if (towers_[0].step().isSparse(i)) continue;
    const auto elements =
        static_cast<uint64_t>(model.graph.spec(model.variables[i].value).shape.elements());
    for (uint64_t begin = 0; begin < elements; begin += kPieceElements)
      pieces_.push_back({i, begin, std::min(kPieceElements, elements - begin)});
  }
}

// Side by side in the order of the towers, as the batch is: so all that they looked up is one look-up.
void TowerGroup::addRows(const model::ModelGraph& model) {
  for (uint32_t i = 0; i < model.variables.size(); ++i) {
    if (!towers_[0].step().isSparse(i)) continue;
    const auto elements =
        static_cast<size_t>(model.graph.spec(model.variables[i].gradient.value()).shape.elements());
    Buffer& rows = rows_.emplace_back(size() * elements * sizeof(float));
    for (uint32_t tower = 0; tower < size(); ++tower)
      towers_[tower].step().bindRows(i, rows.as<float>() + tower * elements);
  }
}

float TowerGroup::compute(const Batch& batch, ParameterBinding& binding,
                          GradientListener* listener) {
  DTF_CHECK(listener == nullptr || (size() == 1 && !are_kept_));
  bind(batch, binding);
  run(listener);
  binding.onComputed();
  if (size() > 1 && !are_kept_) takeMean();
  joinRows(binding);
  double loss = 0;
  for (const Tower& tower : towers_) loss += tower.step().loss();
  return static_cast<float>(loss / size());
}

void TowerGroup::bind(const Batch& batch, ParameterBinding& binding) {
  for (uint32_t i = 0; i < size(); ++i) {
    ModelStep& step = towers_[i].step();
    step.bindShare(batch.examples, i, size());
    step.setRandomKey(batch.seed, maskNumber(batch.number, i));
  }
  if (!are_kept_) bindVariables(binding);
}

void TowerGroup::bindVariables(ParameterBinding& binding) {
  for (Tower& tower : towers_)
    for (uint32_t variable = 0; variable < targets_.size(); ++variable)
      tower.step().bindValue(variable, binding.value(variable));
  ModelStep& first = towers_[0].step();
  for (uint32_t variable = 0; variable < targets_.size(); ++variable) {
    if (first.isSparse(variable)) continue;
    targets_[variable] = binding.gradient(variable);
    first.bindGradient(variable, targets_[variable]);
  }
}

template <class F>
void TowerGroup::forEach(size_t parts, const F& f) const {
  if (together_ != nullptr)
    return together_->run(static_cast<int>(parts),
                          [&f](int part, int) { f(static_cast<size_t>(part)); });
  for (size_t part = 0; part < parts; ++part) f(part);
}

void TowerGroup::run(GradientListener* listener) {
  if (size() == 1) {
    towers_[0].run(listener);
  } else {
    forEach(size(), [this](size_t tower) { towers_[tower].run(); });
  }
  for (const Tower& tower : towers_) tower.throwIfFailed(size() > 1);
}

// Tower by tower into the first one's: each sum in one order, whoever takes it.
void TowerGroup::takeMean() {
  const trace::Span span("mean of towers");
  const float share = 1 / static_cast<float>(size());
  forEach(pieces_.size(), [&](size_t i) {
    const Piece& piece = pieces_[i];
    float* const target = targets_[piece.variable] + piece.begin;
    for (uint32_t tower = 1; tower < size(); ++tower)
      ps::addInto(target, towers_[tower].gradient(piece.variable) + piece.begin, piece.count);
    ps::scale(target, share, piece.count);
  });
}

void TowerGroup::joinRows(ParameterBinding& binding) const {
  const ModelStep& first = towers_[0].step();
  for (uint32_t variable = 0; variable < targets_.size(); ++variable) {
    if (!first.isSparse(variable)) continue;
    LookUp all = first.lookUp(variable);
    all.count *= size();
    binding.setGradient(variable, all);
    if (size() == 1) continue;
    const std::span<float> sum = binding.gradientValues(variable);
    ps::scale(sum.data(), 1 / static_cast<float>(size()), sum.size());
  }
}

}  // namespace dtf::train
