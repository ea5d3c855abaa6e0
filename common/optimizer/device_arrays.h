#pragma once

// A shard's arrays on the device that computes the steps. A worker that holds the parameters itself
// needs them elsewhere only for a checkpoint, an evaluation or a summary. The store
// (parameter_store.h) counts the updates, and reads the arrays on demand.

#include <cstdint>
#include <span>

#include "common/optimizer/optimizer.h"

namespace dtf::optimizer {

// Every array has the layout and the size of the shard's arena.
// Threads: any, one call at a time, since the shard is under one lock; a call waits for the step
// that runs meanwhile.
// Blocks: write() and the reads, until the device has copied; update() of several devices.
// Errors: the device's.
class DeviceArrays {
 public:
  virtual ~DeviceArrays() = default;

  // `slots`: all of the optimizer's, in the order of ParameterStore::slot().
  virtual void write(std::span<const float> parameters,
                     std::span<const std::span<const float>> slots) = 0;

  // Updates in place, with the gradient that lies on the device. May return before it is done.
  // After an error the arrays can't be used until the next write().
  virtual void update(const UpdateConstants& constants) = 0;

  virtual void readParameters(float* to) = 0;
  virtual void readSlot(uint32_t slot, float* to) = 0;
};

}  // namespace dtf::optimizer
