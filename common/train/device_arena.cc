#include "common/train/device_arena.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/optimizer/moving_average.h"
#include "common/optimizer/optimizer.h"
#include "common/runtime/variable_ops.h"

namespace dtf::train {

namespace {

constexpr auto kLine = static_cast<uint64_t>(runtime::kArenaLine);

graph::TensorSpec vectorOf(DType dtype, size_t elements) {
  return {dtype, {static_cast<int64_t>(elements)}};
}

// Returns the first element of a tower's lines; the first of the next tower is their end. Shares
// differ by a line at most.
uint64_t firstOf(uint64_t elements, uint32_t index, uint32_t towers) {
  return elements / kLine * index / towers * kLine;
}

// Returns constants for attributes that are the same in every update.
optimizer::UpdateConstants constantsOf(const cluster::OptimizerSpec& optimizer) {
  return optimizer::OptimizerClock(optimizer).next();
}

graph::Attributes attributesOf(const optimizer::UpdateConstants& c) {
  return {{"kind", static_cast<int64_t>(c.kind)},
          {"use_nesterov", c.use_nesterov},
          {"centered", c.centered},
          {"averages", c.average_slot != optimizer::kSlotsMax},
          {"momentum", double{c.momentum}},
          {"rho", double{c.rho}},
          {"one_minus_rho", double{c.one_minus_rho}},
          {"one_minus_beta1", double{c.one_minus_beta1}},
          {"one_minus_beta2", double{c.one_minus_beta2}},
          {"epsilon", double{c.epsilon}},
          {"l1", double{c.l1}},
          {"l2_twice", double{c.l2_twice}},
          {"l2_shrinkage_twice", double{c.l2_shrinkage_twice}},
          {"clip_by_value", double{c.clip_by_value}},
          {"l2", double{c.l2}},
          {"one_minus_average_decay", double{c.one_minus_average_decay}}};
}

}  // namespace

// The kernels' inputs for lines [begin, end), counted from `begin`.
struct DeviceArena::Lines {
  std::vector<uint8_t> kinds;       // by line
  std::vector<float> rates;         // by kind - 1
  std::vector<int32_t> statistics;  // the lines whose kind isn't 0

  Lines(const arena::ParameterLayout& layout, uint64_t begin, uint64_t end)
      : kinds((end - begin) / kLine) {
    for (const optimizer::MovingRange& range : optimizer::movingRanges(layout, 0)) {
      auto rate = std::ranges::find(rates, range.one_minus_momentum);
      if (rate == rates.end()) rate = rates.insert(rates.end(), range.one_minus_momentum);
      const auto kind = static_cast<uint8_t>(rate - rates.begin() + 1);
      for (uint64_t at = std::max(range.begin, begin); at < std::min(range.end, end); at += kLine) {
        const uint64_t line = (at - begin) / kLine;
        kinds[line] = kind;
        statistics.push_back(static_cast<int32_t>(line));
      }
    }
  }
};

DeviceArena::DeviceArena(const arena::ParameterLayout& layout,
                         const cluster::OptimizerSpec& optimizer, const ComputeDevice& on,
                         uint32_t index, uint32_t towers)
    : on_(on),
      index_(index),
      elements_(layout.shards.at(0).elements),
      begin_(firstOf(elements_, index, towers)),
      end_(firstOf(elements_, index + 1, towers)),
      mean_(on),
      inspection_(on),
      scaling_(on),
      update_(on) {
  DTF_CHECK(layout.shards.size() == 1 && index < towers && elements_ % kLine == 0);
  const runtime::DeviceLock lock(*on_.device);
  parameters_ = on_.device->allocate(elements_ * sizeof(float));
  gradients_ = on_.device->allocate(elements_ * sizeof(float));  // its padding stays 0
  for (uint32_t slot = 0; slot < optimizer::slotCount(optimizer); ++slot)
    slots_.push_back(on_.device->allocate(ownBytes()));
  keep(layout);
  const Lines lines(layout, begin_, end_);
  step_rates_ = on_.device->allocate(2 * sizeof(float));
  kinds_ = copied(lines.kinds.data(), lines.kinds.size());
  rates_ = copied(lines.rates.data(), lines.rates.size() * sizeof(float));
  statistics_ = copied(lines.statistics.data(), lines.statistics.size() * sizeof(int32_t));
  if (towers > 1) addMean(towers);
  if (begin_ < end_) {
    addInspection(lines, optimizer);
    addUpdate(lines, optimizer);
  }
  on_.device->synchronise();
  for (DeviceOperations* const operations : {&mean_, &inspection_, &scaling_, &update_})
    operations->prepare();
}

void DeviceArena::keep(const arena::ParameterLayout& layout) {
  for (const arena::Slice& slice : layout.shards[0].slices) {
    const auto at = [&slice](const runtime::DeviceMemory& memory) {
      return reinterpret_cast<float*>(memory.get()) + slice.offset;
    };
    kept_[layout.variables[slice.variable].name] = {at(parameters_), at(gradients_)};
  }
}

// Copies `bytes` to the device. The source must stay until the device is synchronised.
runtime::DeviceMemory DeviceArena::copied(const void* from, size_t bytes) {
  runtime::DeviceMemory memory = on_.device->allocate(bytes);
  if (bytes > 0) on_.device->copyToDevice(memory.get(), static_cast<const std::byte*>(from), bytes);
  return memory;
}

DeviceTensor DeviceArena::ownTensor(std::byte* memory) const {
  return {vectorOf(DType::kFloat32, end_ - begin_), memory};
}

void DeviceArena::addMean(uint32_t towers) {
  std::vector<DeviceTensor> inputs;
  for (uint32_t tower = 0; tower < towers; ++tower) {
    others_.push_back(tower == index_ ? nullptr : on_.device->allocate(ownBytes()));
    inputs.push_back(ownTensor(tower == index_ ? own(gradients_) : others_[tower].get()));
  }
  if (begin_ == end_) return;
  const float share = 1 / static_cast<float>(towers);
  mean_.add(runtime::kMeanOfTowersOp, {{"share", double{share}}}, inputs,
            {ownTensor(own(gradients_))});
}

void DeviceArena::addInspection(const Lines& lines, const cluster::OptimizerSpec& optimizer) {
  found_there_ = on_.device->allocate(sizeof(int64_t));
  norm_ = on_.device->allocate(sizeof(float));
  const DeviceTensor gradients = ownTensor(own(gradients_));
  has_statistics_ = !lines.statistics.empty();
  if (has_statistics_)
    inspection_.add(
        runtime::kCheckStatisticsOp, {},
        {{vectorOf(DType::kInt32, lines.statistics.size()), statistics_.get()}, gradients},
        {{vectorOf(DType::kInt64, 1), found_there_.get()}});
  clips_ = optimizer.clip_by_global_norm > 0;
  factor_ = on_.device->allocate(sizeof(float));
  const DeviceTensor kinds{vectorOf(DType::kUInt8, lines.kinds.size()), kinds_.get()};
  const graph::TensorSpec one = vectorOf(DType::kFloat32, 1);
  if (clips_)
    inspection_.add(runtime::kNormOfTrainedOp, {}, {kinds, gradients}, {{one, norm_.get()}});
  scaling_.add(runtime::kScaleTrainedOp, {}, {{one, factor_.get()}, kinds, gradients}, {gradients});
}

void DeviceArena::addUpdate(const Lines& lines, const cluster::OptimizerSpec& optimizer) {
  std::vector<DeviceTensor> changed = {ownTensor(own(parameters_))};
  for (const runtime::DeviceMemory& slot : slots_) changed.push_back(ownTensor(slot.get()));
  std::vector<DeviceTensor> inputs = {{vectorOf(DType::kFloat32, 2), step_rates_.get()},
                                      {vectorOf(DType::kUInt8, lines.kinds.size()), kinds_.get()},
                                      {vectorOf(DType::kFloat32, lines.rates.size()), rates_.get()},
                                      ownTensor(own(gradients_))};
  inputs.insert(inputs.end(), changed.begin(), changed.end());
  update_.add(runtime::kApplyOptimizerOp, attributesOf(constantsOf(optimizer)), inputs, changed);
}

void DeviceArena::write(std::span<const float> parameters,
                        std::span<const std::span<const float>> slots) {
  DTF_CHECK(parameters.size() == elements_ && slots.size() == slots_.size());
  const runtime::DeviceLock lock(*on_.device);
  on_.device->copyToDevice(parameters_.get(), reinterpret_cast<const std::byte*>(parameters.data()),
                           parameters.size_bytes());
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    DTF_CHECK(slots[slot].size() == elements_);
    on_.device->copyToDevice(slots_[slot].get(),
                             reinterpret_cast<const std::byte*>(slots[slot].data() + begin_),
                             ownBytes());
  }
  on_.device->synchronise();
}

void DeviceArena::read(const std::byte* from, float* to, size_t bytes) {
  const runtime::DeviceLock lock(*on_.device);
  on_.device->copyToHost(reinterpret_cast<std::byte*>(to), from, bytes);
  on_.device->synchronise();
}

void DeviceArena::readParameters(float* to) {
  read(parameters_.get(), to, elements_ * sizeof(float));
}

void DeviceArena::readSlot(uint32_t slot, float* to) {
  read(slots_.at(slot).get(), to + begin_, ownBytes());
}

void DeviceArena::readGradients(float* to) {
  read(own(gradients_), to + begin_, ownBytes());
}

void DeviceArena::takeMean(const DeviceArenas& all) {
  DTF_CHECK(all.size() == others_.size() && all[index_].get() == this);
  const runtime::DeviceLock lock(*on_.device);
  for (size_t tower = 0; tower < all.size(); ++tower)
    if (tower != index_)
      on_.device->copyFromPeer(others_[tower].get(), *all[tower]->on_.device,
                               own(all[tower]->gradients_), ownBytes());
  mean_.run();
}

void DeviceArena::startInspection() {
  if (inspection_.empty()) return;
  const runtime::DeviceLock lock(*on_.device);
  inspection_.run();
  const auto fetch = [this](auto& to, const runtime::DeviceMemory& from) {
    on_.device->copyToHost(reinterpret_cast<std::byte*>(&to), from.get(), sizeof to);
  };
  if (has_statistics_) fetch(found_, found_there_);
  if (clips_) fetch(found_norm_, norm_);
}

DeviceArena::Findings DeviceArena::finishInspection() {
  if (!inspection_.empty()) wait();
  return {found_ == 0, double{found_norm_}};
}

void DeviceArena::scaleGradients(float factor) {
  const runtime::DeviceLock lock(*on_.device);
  if (scaling_.empty()) return;
  send(factor, factor_.get());
  scaling_.run();
}

// The device reads the number when the copy is done, so the ring keeps it until then.
void DeviceArena::send(float value, std::byte* to) {
  if (sends_ > 0 && sends_ % sent_.size() == 0) on_.device->synchronise();
  float& from = sent_[sends_++ % sent_.size()];
  from = value;
  on_.device->copyToDevice(to, reinterpret_cast<const std::byte*>(&from), sizeof from);
}

void DeviceArena::update(const optimizer::UpdateConstants& constants) {
  const runtime::DeviceLock lock(*on_.device);
  if (update_.empty()) return;
  const std::array rates = {constants.learning_rate, constants.weight_decay};
  if (sent_rates_ != rates) {
    send(rates[0], step_rates_.get());
    send(rates[1], step_rates_.get() + sizeof(float));
  }
  sent_rates_ = rates;
  update_.run();
}

void DeviceArena::takeParameters(const DeviceArenas& all) {
  DTF_CHECK(all.size() == others_.size() && all[index_].get() == this);
  const runtime::DeviceLock lock(*on_.device);
  for (const std::unique_ptr<DeviceArena>& other : all)
    if (other->index_ != index_)
      on_.device->copyFromPeer(other->own(parameters_), *other->on_.device,
                               other->own(other->parameters_), other->ownBytes());
}

void DeviceArena::wait() {
  const runtime::DeviceLock lock(*on_.device);
  on_.device->synchronise();
}

}  // namespace dtf::train
