#pragma once

// The variables of one tower where its device keeps them: parameters and gradients of all, as an
// arena each, and the optimizer's slots of those lines that this device updates. A single device
// updates all lines; of several each has an equal share of them, takes the others' gradients of its
// lines, and the others take the parameters. So each number crosses the links twice, and no slot is
// kept twice: S. Rajbhandari et al., "ZeRO" (SC 2020), stage 1.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/cluster/optimizer_spec.h"
#include "common/ps/parameter_layout.h"
#include "common/runtime/compiled_step.h"
#include "common/runtime/device.h"
#include "common/train/device_operations.h"
#include "common/train/model_part.h"

namespace dtf::train {

class DeviceArena;
using DeviceArenas = std::vector<std::unique_ptr<DeviceArena>>;  // of all towers, in their order

// Owns: the arenas on the device, the programs that look at gradients and apply them.
// Borrows: the device and its kernels; other towers' arenas while it copies from them.
// Threads: thread-safe but for what start…() and finish…() share: each call is one turn with
// the device (runtime::DeviceLock).
// Blocks: the constructor, write(), the reads, finishInspection() and wait(), until the device is
// done.
// Errors: those of the device, kUnavailable where its memory is too small.
class DeviceArena {
 public:
  // Of tower `index` of `towers`. `layout` is of one ps.
  DeviceArena(const ps::ParameterLayout& layout, const cluster::OptimizerSpec& optimizer,
              const ComputeDevice& on, uint32_t index, uint32_t towers);

  // By name: what steps are compiled with.
  const runtime::KeptVariables& kept() const { return kept_; }

  // Whole arenas; of the slots it takes its lines.
  void write(std::span<const float> parameters, std::span<const std::span<const float>> slots);
  void readParameters(float* to);
  // To their places in whole arenas: its lines alone.
  void readSlot(uint32_t slot, float* to);
  void readGradients(float* to);

  // Gradients of its lines become the mean over all towers', each of which has been waited for. May
  // return before.
  void takeMean(const DeviceArenas& all);

  // What must be known of the gradients of its lines before an update with them.
  struct Findings {
    bool statistics_are_finite = true;
    double norm = 0;  // of what is trained; 0 where the optimizer doesn't clip by it
  };
  void startInspection();
  Findings finishInspection();
  // Of its lines, what is trained. May return before it is done.
  void scaleGradients(float factor);

  // Of its lines, in place. May return before it is done.
  void update(float learning_rate);
  // The lines of all others, which have been waited for since their update. May return before.
  void takeParameters(const DeviceArenas& all);
  void wait();

 private:
  struct Lines;

  size_t ownBytes() const { return (end_ - begin_) * sizeof(float); }
  std::byte* own(const runtime::DeviceMemory& arena) const {
    return arena.get() + begin_ * sizeof(float);
  }
  runtime::DeviceMemory copied(const void* from, size_t bytes);
  void keep(const ps::ParameterLayout& layout);
  void addMean(uint32_t towers);
  void addUpdate(const Lines& lines, const cluster::OptimizerSpec& optimizer);
  void addInspection(const Lines& lines, const cluster::OptimizerSpec& optimizer);
  void send(float value, const runtime::DeviceMemory& to);
  DeviceTensor ownTensor(std::byte* memory) const;
  void read(const std::byte* from, float* to, size_t bytes);

  const ComputeDevice on_;
  const uint32_t index_;
  const uint64_t elements_;
  const uint64_t begin_, end_;  // its lines, in elements
  runtime::DeviceMemory parameters_, gradients_;
  std::vector<runtime::DeviceMemory> slots_;   // of its lines
  std::vector<runtime::DeviceMemory> others_;  // gradients of its lines, by tower; none of its own
  runtime::DeviceMemory learning_rate_, factor_, kinds_, rates_, statistics_;
  runtime::DeviceMemory found_there_, norm_;  // of an inspection
  bool has_statistics_ = false, clips_ = false;
  int64_t found_ = 0;
  float found_norm_ = 0;
  runtime::KeptVariables kept_;
  DeviceOperations mean_, inspection_, scaling_, update_;
  std::optional<float> rate_;  // that the device has
  // Numbers that may still be on their way to the device: as many without a wait.
  std::array<float, 64> sent_{};
  size_t sends_ = 0;
};

}  // namespace dtf::train
