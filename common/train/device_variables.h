#pragma once

// The variables of a worker without a ps where its GPU keeps them: values, gradients and the optimizer's slots lie in the
// device's memory from step to step, updates are computed there, and nothing but batches and losses moves. To the rest of dtf the
// parameters are still those of a shard in this process, which counts the updates and takes the checkpoints.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/cluster/optimizer_spec.h"
#include "common/ps/device_arrays.h"
#include "common/ps/parameter_layout.h"
#include "common/runtime/compiled_step.h"
#include "common/runtime/device.h"
#include "common/train/device_operations.h"
#include "common/train/model_part.h"

namespace dtf::train {

// Owns: the arenas on the device, the programs that look at gradients and apply them.
// Borrows: the device and its kernels, which must outlive this.
// Threads: thread-safe: each call is one turn with the device (runtime::DeviceLock).
// Blocks: all but update(), until the device is done.
// Errors: those of the device, kUnavailable where its memory is too small.
class DeviceVariables final : public ps::DeviceArrays {
 public:
  // Why variables of `layout` can't be kept by `on` and updated by `optimizer` there, as "lamb needs ..."; empty: they can.
  static std::string refusal(const ps::ParameterLayout& layout,
                             const cluster::OptimizerSpec& optimizer, const ComputeDevice& on);

  // Of one ps, and what refusal() has nothing against.
  DeviceVariables(const ps::ParameterLayout& layout, const cluster::OptimizerSpec& optimizer,
                  const ComputeDevice& on);

  // By name: what steps are compiled with. As long as this lives.
  const runtime::KeptVariables& kept() const { return kept_; }

  void write(std::span<const float> parameters,
             std::span<const std::span<const float>> slots) override;
  void update(const ps::UpdateConstants& constants) override;
  void readParameters(float* to) override;
  void readSlot(uint32_t slot, float* to) override;
  // An arena, as the last step left it, or inspect().
  void readGradients(float* to);

  // What must be known of gradients before an update with them.
  struct Findings {
    bool statistics_are_finite = true;
    double norm = 0;  // before it was clipped; 0 where the optimizer doesn't clip by it
  };
  // Clips the gradients where the optimizer does. Nothing is asked of the device, nor waited for, where there is nothing to find.
  Findings inspect();

 private:
  struct Lines;

  runtime::DeviceMemory copied(const void* from, size_t bytes);
  void keep(const ps::ParameterLayout& layout);
  void addUpdate(const Lines& lines);
  void addInspection(const Lines& lines);
  DeviceTensor arena(const runtime::DeviceMemory& memory) const;
  void read(const runtime::DeviceMemory& from, float* to);

  const ComputeDevice on_;
  const cluster::OptimizerSpec optimizer_;
  const uint64_t elements_;
  runtime::DeviceMemory parameters_, gradients_;
  std::vector<runtime::DeviceMemory> slots_;
  runtime::DeviceMemory learning_rate_, kinds_, rates_, statistics_;
  runtime::DeviceMemory first_found_, norm_;  // of inspect()
  bool has_statistics_ = false;
  runtime::KeptVariables kept_;
  DeviceOperations update_, inspection_;
  // Learning rates that may still be on their way to the device: of as many updates without a wait.
  std::array<float, 64> rates_sent_{};
  size_t sent_ = 0;
};

}  // namespace dtf::train
