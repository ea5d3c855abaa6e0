#pragma once

// The devices of a worker, with their kernels and threads. All devices together have as many
// threads as the worker, and each tower has a share. A computation on one device, such as an
// evaluation, has all threads. GPUs come from the plug-in (runtime/plugin_library.h), which is
// loaded if a device is a GPU.

#include <memory>
#include <string>
#include <vector>

#include "common/runtime/compute_pool.h"
#include "common/runtime/computing_device.h"
#include "common/runtime/convolution_ways.h"
#include "common/runtime/device.h"
#include "common/train/tower_group.h"

namespace dtf::train {

// Owns: devices, kernels and threads. The threads of device() and the threads of several towers run
// in turns.
// Threads: thread-compatible.
// Blocks: never.
// Errors: the constructor's, kUnavailable if the host gives fewer threads or lacks a GPU, which is
// never replaced by a CPU.
class WorkerDevices {
 public:
  // `names`: checked, as in the cluster file: "cpu:0", "gpu:1". `rule` is called when the CPU's
  // kernels are made.
  WorkerDevices(const std::vector<std::string>& names, int threads,
                const runtime::ConvolutionRule& rule);
  ~WorkerDevices();
  WorkerDevices(const WorkerDevices&) = delete;
  WorkerDevices& operator=(const WorkerDevices&) = delete;

  int threads() const { return pool_.threads(); }
  // Returns the threads that wait between two steps, for work there. With several towers, these are
  // the threads that run them.
  runtime::ComputePool& betweenSteps() { return together_ ? *together_ : pool_; }
  // Returns the first device, with all threads.
  runtime::Device& device() { return *device_; }
  const runtime::KernelTable& kernels() const { return kernels_; }

  // Returns a tower device for each name; a single one is device() itself. They must not compute
  // while device() does.
  const TowerDevices& towers() const { return towers_; }

 private:
  runtime::ComputePool pool_;
  runtime::KernelTable kernels_;
  std::unique_ptr<runtime::Device> device_;
  std::unique_ptr<runtime::ComputePool> together_;              // null: one tower
  std::vector<std::unique_ptr<runtime::ComputingDevice>> own_;  // empty: one tower
  TowerDevices towers_;
};

}  // namespace dtf::train
