#include "common/train/tower_group.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/trace.h"
#include "common/optimizer/gradient_math.h"

namespace dtf::train {

namespace {

// 64 KiB: a thread's sum stays in its caches until it is divided.
constexpr uint64_t kJoinedElements = 16384;

}  // namespace

TowerGroup::TowerGroup(std::span<const TowerProgram> towers, const TowerDevices& devices,
                       const std::vector<const runtime::KeptVariables*>& kept)
    : together_(devices.together), are_kept_(!kept.empty()) {
  DTF_CHECK(!towers.empty() && towers.size() <= devices.each.size());
  const model::ModelGraph& model = towers[0].model;
  targets_.resize(model.variables.size());
  towers_.reserve(towers.size());
  for (uint32_t i = 0; i < towers.size(); ++i) {
    towers_.emplace_back(towers[i].model, towers[i].part, devices.each[i], i,
                         are_kept_ ? kept.at(i) : nullptr);
    examples_ += towers_[i].step().batchSize();
  }
  for (const Tower& tower : towers_)
    weights_.push_back(static_cast<float>(tower.step().batchSize()) /
                       static_cast<float>(examples_));
  if (std::ranges::count(weights_, weights_[0]) == std::ssize(weights_)) weights_.clear();
  DTF_CHECK(!are_kept_ || (towers.size() == kept.size() && hasEqualShares()));
  addRows(model);
  if (size() > 1 && !are_kept_) addPieces(model);
}

void TowerGroup::addPieces(const model::ModelGraph& model) {
  for (uint32_t i = 0; i < model.variables.size(); ++i) {
    if (towers_[0].step().isSparse(i)) continue;
    const auto elements =
        static_cast<uint64_t>(model.graph.spec(model.variables[i].value).shape.elements());
    for (uint64_t begin = 0; begin < elements; begin += kJoinedElements)
      pieces_.push_back({i, begin, std::min(kJoinedElements, elements - begin)});
  }
}

// Puts the rows side by side in the order of the towers, as in the batch, so that they form one
// look-up.
void TowerGroup::addRows(const model::ModelGraph& model) {
  for (uint32_t i = 0; i < model.variables.size(); ++i) {
    if (!towers_[0].step().isSparse(i)) continue;
    const Shape& shape = model.graph.spec(model.variables[i].gradient.value()).shape;
    const auto of_example = static_cast<size_t>(shape.elements() / towers_[0].step().batchSize());
    Buffer& rows = rows_.emplace_back(static_cast<size_t>(examples_) * of_example * sizeof(float));
    float* next = rows.as<float>();
    for (Tower& tower : towers_) {
      tower.step().bindRows(i, next);
      next += static_cast<size_t>(tower.step().batchSize()) * of_example;
    }
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
  for (uint32_t i = 0; i < size(); ++i)
    loss += (hasEqualShares() ? 1 : double{weights_[i]}) * towers_[i].step().loss();
  return static_cast<float>(hasEqualShares() ? loss / size() : loss);
}

void TowerGroup::bind(const Batch& batch, ParameterBinding& binding) {
  DTF_CHECK(batch.examples.count == examples_);
  int64_t first = 0;
  for (uint32_t i = 0; i < size(); ++i) {
    ModelStep& step = towers_[i].step();
    step.bindExamples(batch.examples, first);
    first += step.batchSize();
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

// Adds all gradients to the first tower's, tower by tower: each sum has the same order on any
// thread.
void TowerGroup::takeMean() {
  const trace::Span span("mean of towers");
  const float share = 1 / static_cast<float>(size());
  forEach(pieces_.size(), [&](size_t i) {
    const Piece& piece = pieces_[i];
    float* const target = targets_[piece.variable] + piece.begin;
    const auto of = [&](uint32_t tower) {
      return towers_[tower].gradient(piece.variable) + piece.begin;
    };
    if (hasEqualShares()) {
      for (uint32_t tower = 1; tower < size(); ++tower)
        optimizer::addInto(target, of(tower), piece.count);
      return optimizer::scale(target, share, piece.count);
    }
    optimizer::scale(target, weights_[0], piece.count);
    for (uint32_t tower = 1; tower < size(); ++tower)
      optimizer::addScaled(target, of(tower), weights_[tower], piece.count);
  });
}

void TowerGroup::joinRows(ParameterBinding& binding) {
  const ModelStep& first = towers_[0].step();
  size_t table = 0;
  for (uint32_t variable = 0; variable < targets_.size(); ++variable) {
    if (!first.isSparse(variable)) continue;
    optimizer::LookUp all = first.lookUp(variable);
    all.count = all.count / static_cast<size_t>(first.batchSize()) * static_cast<size_t>(examples_);
    if (!hasEqualShares()) weighRows(table, all);
    ++table;
    binding.setGradient(variable, all);
    if (size() == 1 || !hasEqualShares()) continue;
    const std::span<float> sum = binding.gradientValues(variable);
    optimizer::scale(sum.data(), 1 / static_cast<float>(size()), sum.size());
  }
}

// Weighs each tower's rows before they are summed.
void TowerGroup::weighRows(size_t table, const optimizer::LookUp& all) {
  Buffer& rows = rows_[table];
  DTF_CHECK(all.gradients == rows.as<float>());
  const size_t of_example = rows.bytes() / sizeof(float) / static_cast<size_t>(examples_);
  float* next = rows.as<float>();
  for (uint32_t i = 0; i < size(); ++i) {
    const size_t elements = static_cast<size_t>(towers_[i].step().batchSize()) * of_example;
    optimizer::scale(next, weights_[i], elements);
    next += elements;
  }
}

}  // namespace dtf::train
