#include "common/train/device_variables.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"
#include "common/ps/moving_average.h"
#include "common/runtime/variable_ops.h"

namespace dtf::train {

using runtime::kArenaLine;

namespace {

constexpr ps::UpdateConstants kNoConstants;

graph::TensorSpec vectorOf(DType dtype, size_t elements) {
  return {dtype, {static_cast<int64_t>(elements)}};
}

// Of an update that has not been counted: all that stays the same from update to update.
ps::UpdateConstants constantsOf(const cluster::OptimizerSpec& optimizer) {
  return ps::OptimizerClock(optimizer).next();
}

graph::Attributes attributesOf(const ps::UpdateConstants& c) {
  return {{"kind", static_cast<int64_t>(c.kind)},
          {"use_nesterov", c.use_nesterov},
          {"centered", c.centered},
          {"averages", c.average_slot != kNoConstants.average_slot},
          {"momentum", double{c.momentum}},
          {"rho", double{c.rho}},
          {"one_minus_rho", double{c.one_minus_rho}},
          {"one_minus_beta1", double{c.one_minus_beta1}},
          {"one_minus_beta2", double{c.one_minus_beta2}},
          {"epsilon", double{c.epsilon}},
          {"l1", double{c.l1}},
          {"l2_twice", double{c.l2_twice}},
          {"l2_shrinkage_twice", double{c.l2_shrinkage_twice}},
          {"weight_decay", double{c.weight_decay}},
          {"clip_by_value", double{c.clip_by_value}},
          {"l2", double{c.l2}},
          {"one_minus_average_decay", double{c.one_minus_average_decay}}};
}

}  // namespace

// What the kernels must know of an arena.
struct DeviceVariables::Lines {
  std::vector<uint8_t> kinds;       // by line
  std::vector<float> rates;         // by kind - 1
  std::vector<int32_t> statistics;  // the lines whose kind isn't 0

  explicit Lines(const ps::ParameterLayout& layout)
      : kinds(layout.shards.at(0).elements / static_cast<uint64_t>(kArenaLine)) {
    for (const ps::MovingRange& range : ps::movingRanges(layout, 0)) {
      auto rate = std::ranges::find(rates, range.one_minus_momentum);
      if (rate == rates.end()) rate = rates.insert(rates.end(), range.one_minus_momentum);
      const auto kind = static_cast<uint8_t>(rate - rates.begin() + 1);
      for (uint64_t at = range.begin; at < range.end; at += static_cast<uint64_t>(kArenaLine)) {
        const uint64_t line = at / static_cast<uint64_t>(kArenaLine);
        kinds[line] = kind;
        statistics.push_back(static_cast<int32_t>(line));
      }
    }
  }
};

std::string DeviceVariables::refusal(const ps::ParameterLayout& layout,
                                     const cluster::OptimizerSpec& optimizer,
                                     const ComputeDevice& on) {
  using Kind = cluster::OptimizerSpec::Kind;
  if (!on.kernels->has(runtime::kApplyOptimizerOp, on.device->type()))
    return fmt::format("{} has no kernel for it", on.device->name());
  if (cluster::needsWholeVariables(optimizer.kind))
    return fmt::format("{} needs the norms of whole variables",
                       cluster::optimizerName(optimizer.kind));
  if (optimizer.kind == Kind::kFtrl && optimizer.learning_rate_power != -0.5)
    return "ftrl has another learning_rate_power than -0.5";
  if (std::ranges::any_of(layout.variables, &ps::VariableInfo::is_sparse))
    return "the gradients of embeddings are rows";
  std::vector<float> rates;
  for (const ps::MovingRange& range : ps::movingRanges(layout, 0))
    if (std::ranges::find(rates, range.one_minus_momentum) == rates.end())
      rates.push_back(range.one_minus_momentum);
  if (rates.size() > static_cast<size_t>(runtime::kStatisticKindsMax))
    return fmt::format("its statistics have {} momenta", rates.size());
  return "";
}

DeviceVariables::DeviceVariables(const ps::ParameterLayout& layout,
                                 const cluster::OptimizerSpec& optimizer, const ComputeDevice& on)
    : on_(on),
      optimizer_(optimizer),
      elements_(layout.shards.at(0).elements),
      update_(on),
      inspection_(on) {
  DTF_CHECK(layout.shards.size() == 1 && refusal(layout, optimizer, on).empty());
  const runtime::DeviceLock lock(*on_.device);
  const size_t bytes = elements_ * sizeof(float);
  parameters_ = on_.device->allocate(bytes);
  gradients_ = on_.device->allocate(bytes);  // its padding stays 0
  for (uint32_t slot = 0; slot < ps::slotCount(optimizer); ++slot)
    slots_.push_back(on_.device->allocate(bytes));
  keep(layout);
  const Lines lines(layout);
  learning_rate_ = on_.device->allocate(sizeof(float));
  kinds_ = copied(lines.kinds.data(), lines.kinds.size());
  rates_ = copied(lines.rates.data(), lines.rates.size() * sizeof(float));
  statistics_ = copied(lines.statistics.data(), lines.statistics.size() * sizeof(int32_t));
  addUpdate(lines);
  addInspection(lines);
  on_.device->synchronise();
  update_.prepare();
  inspection_.prepare();
}

void DeviceVariables::keep(const ps::ParameterLayout& layout) {
  for (const ps::Slice& slice : layout.shards[0].slices) {
    const auto at = [&slice](const runtime::DeviceMemory& memory) {
      return reinterpret_cast<float*>(memory.get()) + slice.offset;
    };
    kept_[layout.variables[slice.variable].name] = {at(parameters_), at(gradients_)};
  }
}

// The source must stay until the device is waited for.
runtime::DeviceMemory DeviceVariables::copied(const void* from, size_t bytes) {
  runtime::DeviceMemory memory = on_.device->allocate(bytes);
  if (bytes > 0) on_.device->copyToDevice(memory.get(), static_cast<const std::byte*>(from), bytes);
  return memory;
}

DeviceTensor DeviceVariables::arena(const runtime::DeviceMemory& memory) const {
  return {vectorOf(DType::kFloat32, elements_), memory.get()};
}

void DeviceVariables::addUpdate(const Lines& lines) {
  std::vector<DeviceTensor> changed = {arena(parameters_)};
  for (const runtime::DeviceMemory& slot : slots_) changed.push_back(arena(slot));
  std::vector<DeviceTensor> inputs = {{vectorOf(DType::kFloat32, 1), learning_rate_.get()},
                                      {vectorOf(DType::kUInt8, lines.kinds.size()), kinds_.get()},
                                      {vectorOf(DType::kFloat32, lines.rates.size()), rates_.get()},
                                      arena(gradients_)};
  inputs.insert(inputs.end(), changed.begin(), changed.end());
  update_.add(runtime::kApplyOptimizerOp, attributesOf(constantsOf(optimizer_)), inputs, changed);
}

void DeviceVariables::addInspection(const Lines& lines) {
  first_found_ = on_.device->allocate(sizeof(int64_t));
  norm_ = on_.device->allocate(sizeof(float));
  has_statistics_ = !lines.statistics.empty();
  if (has_statistics_)
    inspection_.add(
        runtime::kCheckStatisticsOp, {},
        {{vectorOf(DType::kInt32, lines.statistics.size()), statistics_.get()}, arena(gradients_)},
        {{vectorOf(DType::kInt64, 1), first_found_.get()}});
  if (optimizer_.clip_by_global_norm > 0)
    inspection_.add(
        runtime::kClipByGlobalNormOp, {{"clip_norm", optimizer_.clip_by_global_norm}},
        {{vectorOf(DType::kUInt8, lines.kinds.size()), kinds_.get()}, arena(gradients_)},
        {arena(gradients_), {vectorOf(DType::kFloat32, 1), norm_.get()}});
}

void DeviceVariables::write(std::span<const float> parameters,
                            std::span<const std::span<const float>> slots) {
  DTF_CHECK(parameters.size() == elements_ && slots.size() == slots_.size());
  const runtime::DeviceLock lock(*on_.device);
  const auto copy = [this](std::span<const float> from, const runtime::DeviceMemory& to) {
    DTF_CHECK(from.size() == elements_);
    on_.device->copyToDevice(to.get(), reinterpret_cast<const std::byte*>(from.data()),
                             from.size_bytes());
  };
  copy(parameters, parameters_);
  for (size_t slot = 0; slot < slots.size(); ++slot) copy(slots[slot], slots_[slot]);
  on_.device->synchronise();
}

void DeviceVariables::update(const ps::UpdateConstants& constants) {
  const runtime::DeviceLock lock(*on_.device);
  if (sent_ == 0 || rates_sent_[(sent_ - 1) % rates_sent_.size()] != constants.learning_rate) {
    if (sent_ > 0 && sent_ % rates_sent_.size() == 0) on_.device->synchronise();
    float& rate = rates_sent_[sent_++ % rates_sent_.size()];
    rate = constants.learning_rate;
    on_.device->copyToDevice(learning_rate_.get(), reinterpret_cast<const std::byte*>(&rate),
                             sizeof rate);
  }
  update_.run();
}

void DeviceVariables::read(const runtime::DeviceMemory& from, float* to) {
  const runtime::DeviceLock lock(*on_.device);
  on_.device->copyToHost(reinterpret_cast<std::byte*>(to), from.get(), elements_ * sizeof(float));
  on_.device->synchronise();
}

void DeviceVariables::readParameters(float* to) {
  read(parameters_, to);
}

void DeviceVariables::readSlot(uint32_t slot, float* to) {
  read(slots_.at(slot), to);
}

void DeviceVariables::readGradients(float* to) {
  read(gradients_, to);
}

DeviceVariables::Findings DeviceVariables::inspect() {
  if (inspection_.empty()) return {};
  const runtime::DeviceLock lock(*on_.device);
  inspection_.run();
  int64_t first_found = -1;
  float norm = 0;
  const auto fetch = [this](auto& to, const runtime::DeviceMemory& from) {
    on_.device->copyToHost(reinterpret_cast<std::byte*>(&to), from.get(), sizeof to);
  };
  if (has_statistics_) fetch(first_found, first_found_);
  if (optimizer_.clip_by_global_norm > 0) fetch(norm, norm_);
  on_.device->synchronise();
  return {first_found < 0, double{norm}};
}

}  // namespace dtf::train
