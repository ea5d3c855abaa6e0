#pragma once

// The variables of one tower in the memory of its device. One arena holds all parameters, another
// all gradients. The optimizer's slots exist only for the lines that this device updates. A single
// device updates all lines. Several devices have equal shares of the lines: each fetches the
// others' gradients of its lines, and they fetch its updated parameters. So each number crosses the
// links twice, and no slot is kept twice: S. Rajbhandari et al., "ZeRO" (SC 2020), stage 1.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/arena/parameter_layout.h"
#include "common/cluster/optimizer_spec.h"
#include "common/optimizer/optimizer.h"
#include "common/runtime/compiled_step.h"
#include "common/runtime/device.h"
#include "common/train/device_operations.h"
#include "common/train/model_part.h"

namespace dtf::train {

class DeviceArena;
using DeviceArenas = std::vector<std::unique_ptr<DeviceArena>>;  // by tower

// Owns: the arenas on the device, and the programs that inspect and apply gradients.
// Borrows: the device and its kernels; other towers' arenas while it copies from them.
// Threads: thread-safe, but startInspection() and finishInspection() share their results. Each call
// holds the runtime::DeviceLock once.
// Blocks: the constructor, write(), the reads, finishInspection() and wait(), until the device is
// done.
// Errors: as the device; kUnavailable if its memory is too small.
class DeviceArena {
 public:
  // Makes the arena of tower `index` of `towers`. `layout` has one shard (DTF_CHECK).
  DeviceArena(const arena::ParameterLayout& layout, const cluster::OptimizerSpec& optimizer,
              const ComputeDevice& on, uint32_t index, uint32_t towers);

  // Returns the variables by name, for compiling steps.
  const runtime::KeptVariables& kept() const { return kept_; }

  // Writes whole arenas, but only its own lines of the slots.
  void write(std::span<const float> parameters, std::span<const std::span<const float>> slots);
  void readParameters(float* to);
  // readSlot() and readGradients() fill only its own lines of a whole arena.
  void readSlot(uint32_t slot, float* to);
  void readGradients(float* to);

  // Turns the gradients of its lines into the mean over all towers, for all of which the caller has
  // waited. May return before the device is done.
  void takeMean(const DeviceArenas& all);

  // An inspection of the gradients of its lines, before an update with them.
  struct Findings {
    bool statistics_are_finite = true;
    double norm = 0;  // of trained elements; 0 if the optimizer doesn't clip
  };
  void startInspection();
  Findings finishInspection();
  // Scales the trained elements of its lines. May return before the device is done.
  void scaleGradients(float factor);

  // Updates its lines in place. May return before the device is done.
  void update(const optimizer::UpdateConstants& constants);
  // Fetches the lines of all other towers, for which the caller has waited since their update. May
  // return before the device is done.
  void takeParameters(const DeviceArenas& all);
  void wait();

 private:
  struct Lines;

  size_t ownBytes() const { return (end_ - begin_) * sizeof(float); }
  std::byte* own(const runtime::DeviceMemory& arena) const {
    return arena.get() + begin_ * sizeof(float);
  }
  runtime::DeviceMemory copied(const void* from, size_t bytes);
  void keep(const arena::ParameterLayout& layout);
  void addMean(uint32_t towers);
  void addUpdate(const Lines& lines, const cluster::OptimizerSpec& optimizer);
  void addInspection(const Lines& lines, const cluster::OptimizerSpec& optimizer);
  void send(float value, std::byte* to);
  DeviceTensor ownTensor(std::byte* memory) const;
  void read(const std::byte* from, float* to, size_t bytes);

  const ComputeDevice on_;
  const uint32_t index_;
  const uint64_t elements_;
  const uint64_t begin_, end_;  // its lines, in elements
  runtime::DeviceMemory parameters_, gradients_;
  std::vector<runtime::DeviceMemory> slots_;   // of its lines
  std::vector<runtime::DeviceMemory> others_;  // other towers' gradients of its lines, by tower
  runtime::DeviceMemory step_rates_, factor_, kinds_, rates_, statistics_;
  runtime::DeviceMemory found_there_, norm_;  // results of an inspection
  bool has_statistics_ = false, clips_ = false;
  int64_t found_ = 0;
  float found_norm_ = 0;
  runtime::KeptVariables kept_;
  DeviceOperations mean_, inspection_, scaling_, update_;
  std::optional<std::array<float, 2>> sent_rates_;  // on the device
  // A ring of numbers on their way to the device; send() waits once a round.
  std::array<float, 64> sent_{};
  size_t sends_ = 0;
};

}  // namespace dtf::train
