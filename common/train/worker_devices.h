#pragma once

// The devices that a worker was given, with the kernels and the threads that they compute with. All
// devices together have as many threads as the worker: a tower has its share of them. What is
// computed by one device, such as an evaluation, has them all. GPUs are those of the plug-in
// (runtime/plugin_library.h), which is loaded when there is one among them.

#include <memory>
#include <string>
#include <vector>

#include "common/runtime/compute_pool.h"
#include "common/runtime/computing_device.h"
#include "common/runtime/convolution_ways.h"
#include "common/runtime/device.h"
#include "common/train/tower_group.h"

namespace dtf::train {

// Owns: all that it names; the threads of the one and of the other way to compute sleep in turns.
// Threads: thread-compatible.  Never blocks.
// Errors: the constructor's kUnavailable, when the host gives fewer threads or lacks a GPU, which
// is never replaced by a CPU.
class WorkerDevices {
 public:
  // `names` as in the cluster file, checked: "cpu:0", "gpu:1". `rule` is asked when the CPU's
  // kernels are made.
  WorkerDevices(const std::vector<std::string>& names, int threads,
                const runtime::ConvolutionRule& rule);
  ~WorkerDevices();
  WorkerDevices(const WorkerDevices&) = delete;
  WorkerDevices& operator=(const WorkerDevices&) = delete;

  int threads() const { return pool_.threads(); }
  // Those of the threads that wait between two steps, for what is to be done there: of several
  // towers, the ones that run them.
  runtime::ComputePool& betweenSteps() { return together_ ? *together_ : pool_; }
  // The first of `names`, with all threads.
  runtime::Device& device() { return *device_; }
  const runtime::KernelTable& kernels() const { return kernels_; }

  // One for each name; a single one is device() itself. Not while device() computes.
  const TowerDevices& towers() const { return towers_; }

 private:
  runtime::ComputePool pool_;
  runtime::KernelTable kernels_;
  std::unique_ptr<runtime::Device> device_;
  std::unique_ptr<runtime::ComputePool> together_;              // of several towers
  std::vector<std::unique_ptr<runtime::ComputingDevice>> own_;  // likewise
  TowerDevices towers_;
};

}  // namespace dtf::train
