#pragma once

// Variables in the memory of the GPUs of a worker without ps. The GPUs keep values, gradients and
// the optimizer's slots from step to step, and compute the updates; only batches and losses pass
// through the host. The rest of dtf sees a shard in this process, which counts the updates and
// takes the checkpoints.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/arena/parameter_layout.h"
#include "common/cluster/optimizer_spec.h"
#include "common/optimizer/device_arrays.h"
#include "common/train/device_arena.h"
#include "common/train/model_part.h"

namespace dtf::train {

// Owns: the arenas, one for each tower.
// Borrows: the devices and their kernels, which must outlive this.
// Threads: prepareUpdate() and readGradients() on the training thread; the others on any, one at a
// time (DeviceArrays). A checkpoint's thread may call them between and during steps. update() comes
// between two steps.
// Blocks: all but the update() of a single device, until the devices are done.
// Errors: as DeviceArena.
class DeviceVariables final : public optimizer::DeviceArrays {
 public:
  // Returns why `towers` can't keep the variables of `layout` and update them with `optimizer`, as
  // "lamb needs ..."; empty if they can.
  static std::string refusal(const arena::ParameterLayout& layout,
                             const cluster::OptimizerSpec& optimizer,
                             std::span<const ComputeDevice> towers);

  // `layout` has one shard, and refusal() is empty (DTF_CHECK).
  DeviceVariables(const arena::ParameterLayout& layout, const cluster::OptimizerSpec& optimizer,
                  std::span<const ComputeDevice> towers);

  // Returns the variables by tower and name, for compiling steps. Valid as long as this.
  std::vector<const runtime::KeptVariables*> kept() const;

  // Called after a step of all towers. Turns their gradients into the mean, clips it if the
  // optimizer does, and multiplies it by `weight`. Makes no device call that has nothing to do.
  DeviceArena::Findings prepareUpdate(float weight = 1);

  void write(std::span<const float> parameters,
             std::span<const std::span<const float>> slots) override;
  void update(const optimizer::UpdateConstants& constants) override;
  void readParameters(float* to) override;
  void readSlot(uint32_t slot, float* to) override;
  // Reads the mean over the towers; call it after prepareUpdate().
  void readGradients(float* to);

 private:
  const double clip_norm_;  // 0: no clipping
  DeviceArenas arenas_;
};

}  // namespace dtf::train
