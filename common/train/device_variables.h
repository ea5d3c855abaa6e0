#pragma once

// The variables of a worker without a ps where its GPUs keep them: values, gradients and the
// optimizer's slots lie in the devices' memory from step to step, updates are computed there, and
// nothing but batches and losses passes through the host. To the rest of dtf the parameters are
// still those of a shard in this process, which counts the updates and takes the checkpoints.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/cluster/optimizer_spec.h"
#include "common/ps/device_arrays.h"
#include "common/ps/parameter_layout.h"
#include "common/train/device_arena.h"
#include "common/train/model_part.h"

namespace dtf::train {

// Owns: the arenas, one for each tower.
// Borrows: the devices and their kernels, which must outlive this.
// Threads: prepareUpdate() and readGradients() are the training thread's; the others any thread's,
// one at a time (DeviceArrays): a checkpoint's thread may call them between and beside steps.
// update() comes between two steps.
// Blocks: all but the update() of a single device, until devices are done.
// Errors: as DeviceArena.
class DeviceVariables final : public ps::DeviceArrays {
 public:
  // Why variables of `layout` can't be kept by `towers` and updated by `optimizer` there, as "lamb
  // needs ..."; empty: they can.
  static std::string refusal(const ps::ParameterLayout& layout,
                             const cluster::OptimizerSpec& optimizer,
                             std::span<const ComputeDevice> towers);

  // Of one ps, and what refusal() has nothing against.
  DeviceVariables(const ps::ParameterLayout& layout, const cluster::OptimizerSpec& optimizer,
                  std::span<const ComputeDevice> towers);

  // By tower, and name: what steps are compiled with. As long as this lives.
  std::vector<const runtime::KeptVariables*> kept() const;

  // After a step of all towers: their gradients become the mean, clipped where the optimizer says
  // so, times `weight`. Nothing is asked of the devices, nor waited for, where there is nothing to
  // do.
  DeviceArena::Findings prepareUpdate(float weight = 1);

  void write(std::span<const float> parameters,
             std::span<const std::span<const float>> slots) override;
  void update(const ps::UpdateConstants& constants) override;
  void readParameters(float* to) override;
  void readSlot(uint32_t slot, float* to) override;
  // The mean over the towers: after prepareUpdate().
  void readGradients(float* to);

 private:
  const double clip_norm_;  // 0: no clipping
  DeviceArenas arenas_;
};

}  // namespace dtf::train
