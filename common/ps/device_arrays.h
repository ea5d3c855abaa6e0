#pragma once

// A shard's arrays where the device that computes the steps keeps them: a worker that holds the
// parameters itself has no use for them anywhere else, but for a checkpoint, an evaluation or a
// summary. The store (parameter_store.h) counts the updates, and asks for what somebody wants to
// read.

#include <cstdint>
#include <span>

#include "common/ps/optimizer.h"

namespace dtf::ps {

// Every array has the layout and the size of the shard's arena.
// Threads: any, one call at a time, as the shard that has it is under one lock; a call waits for
// the step that runs meanwhile.
// Blocks: write() and the reads, until the device has copied; update() of several devices.
// Errors: those of the device.
class DeviceArrays {
 public:
  virtual ~DeviceArrays() = default;

  // `slots`: all of the optimizer's, in the order of ParameterStore::slot().
  virtual void write(std::span<const float> parameters,
                     std::span<const std::span<const float>> slots) = 0;

  // In place, with the gradient that lies on the device. May return before it is done. After an
  // error the arrays are of no use until the next write().
  virtual void update(const UpdateConstants& constants) = 0;

  virtual void readParameters(float* to) = 0;
  virtual void readSlot(uint32_t slot, float* to) = 0;
};

}  // namespace dtf::ps
