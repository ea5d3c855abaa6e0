#include "common/train/device_variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "common/base/trace.h"
#include "common/optimizer/moving_average.h"
#include "common/runtime/variable_ops.h"

namespace dtf::train {

namespace {

// Returns why these towers can't keep variables.
std::string refusalOf(std::span<const ComputeDevice> towers) {
  for (const ComputeDevice& tower : towers)
    if (tower.device->usesHostMemory() ||
        !tower.kernels->has(runtime::kApplyOptimizerOp, tower.device->type()))
      return fmt::format("{} has no kernel for it", tower.device->name());
  if (towers.size() > static_cast<size_t>(runtime::kTowersMax))
    return fmt::format("{} devices are more than {}", towers.size(), runtime::kTowersMax);
  return "";
}

size_t ratesOf(const arena::ParameterLayout& layout) {
  std::vector<float> rates;
  for (const optimizer::MovingRange& range : optimizer::movingRanges(layout, 0))
    if (std::ranges::find(rates, range.one_minus_momentum) == rates.end())
      rates.push_back(range.one_minus_momentum);
  return rates.size();
}

}  // namespace

std::string DeviceVariables::refusal(const arena::ParameterLayout& layout,
                                     const cluster::OptimizerSpec& optimizer,
                                     std::span<const ComputeDevice> towers) {
  using Kind = cluster::OptimizerSpec::Kind;
  if (std::string why = refusalOf(towers); !why.empty()) return why;
  if (cluster::needsWholeVariables(optimizer.kind))
    return fmt::format("{} needs the norms of whole variables",
                       cluster::optimizerName(optimizer.kind));
  if (optimizer.kind == Kind::kFtrl && optimizer.learning_rate_power != -0.5)
    return "ftrl has another learning_rate_power than -0.5";
  if (std::ranges::any_of(layout.variables, &arena::VariableInfo::is_sparse))
    return "the gradients of embeddings are rows";
  if (ratesOf(layout) > static_cast<size_t>(runtime::kStatisticKindsMax))
    return fmt::format("its statistics have {} momenta", ratesOf(layout));
  return "";
}

DeviceVariables::DeviceVariables(const arena::ParameterLayout& layout,
                                 const cluster::OptimizerSpec& optimizer,
                                 std::span<const ComputeDevice> towers)
    : clip_norm_(optimizer.clip_by_global_norm) {
  DTF_CHECK(!towers.empty() && refusal(layout, optimizer, towers).empty());
  for (uint32_t i = 0; i < towers.size(); ++i)
    arenas_.push_back(std::make_unique<DeviceArena>(layout, optimizer, towers[i], i,
                                                    static_cast<uint32_t>(towers.size())));
}

std::vector<const runtime::KeptVariables*> DeviceVariables::kept() const {
  std::vector<const runtime::KeptVariables*> kept;
  for (const auto& arena : arenas_) kept.push_back(&arena->kept());
  return kept;
}

DeviceArena::Findings DeviceVariables::prepareUpdate(float weight) {
  if (arenas_.size() > 1) {
    const trace::Span span("mean of towers");
    for (const auto& arena : arenas_) arena->takeMean(arenas_);
  }
  for (const auto& arena : arenas_) arena->startInspection();
  DeviceArena::Findings all;
  double squares = 0;
  for (const auto& arena : arenas_) {
    const DeviceArena::Findings found = arena->finishInspection();
    all.statistics_are_finite = all.statistics_are_finite && found.statistics_are_finite;
    squares += found.norm * found.norm;
  }
  all.norm = std::sqrt(squares);
  double factor = weight;
  if (std::isfinite(all.norm) && all.norm > clip_norm_) factor *= clip_norm_ / all.norm;
  if (factor != 1)
    for (const auto& arena : arenas_) arena->scaleGradients(static_cast<float>(factor));
  return all;
}

void DeviceVariables::write(std::span<const float> parameters,
                            std::span<const std::span<const float>> slots) {
  for (const auto& arena : arenas_) arena->write(parameters, slots);
}

// Waits for all updates before any tower fetches their parameters. So no tower still reads
// gradients that the next step overwrites.
void DeviceVariables::update(const optimizer::UpdateConstants& constants) {
  for (const auto& arena : arenas_) arena->update(constants);
  if (arenas_.size() == 1) return;
  for (const auto& arena : arenas_) arena->wait();
  for (const auto& arena : arenas_) arena->takeParameters(arenas_);
}

// Every tower has all parameters.
void DeviceVariables::readParameters(float* to) {
  arenas_[0]->readParameters(to);
}

void DeviceVariables::readSlot(uint32_t slot, float* to) {
  for (const auto& arena : arenas_) arena->readSlot(slot, to);
}

void DeviceVariables::readGradients(float* to) {
  for (const auto& arena : arenas_) arena->readGradients(to);
}

}  // namespace dtf::train
