#pragma once

// Devices by their name in the cluster file, with everything needed to compute on them.

#include <memory>
#include <string>

#include "common/base/ids.h"
#include "common/graph/device_name.h"
#include "common/runtime/compute_pool.h"
#include "common/runtime/convolution_ways.h"
#include "common/runtime/device.h"
#include "common/runtime/kernel.h"

namespace dtf::runtime {

// Opens "cpu:3" of this process, or "gpu:1" of the plug-in, which is loaded for it.
// Errors: kUnavailable if the host lacks the GPU or the plug-in.
std::unique_ptr<Device> makeDevice(const std::string& name);

// Returns the kernels of the CPU, which run on `pool`, and the plug-in's if `name` is a GPU.
// Borrows `pool`. Kernels consult `rule` when they are made. Errors: as makeDevice().
KernelTable kernelsOf(const std::string& name, ComputePool& pool, const ConvolutionRule& rule);

// Returns the number of a task's threads for each of its devices; at least 1.
int threadsOfEach(int threads, size_t devices);

// Returns the name in graphs: "gpu:1" of worker/0 is /job:worker/replica:0/task:0/device:GPU:1.
graph::DeviceName fullName(TaskId task, const std::string& name);

// One of the several devices of a process.
// Owns: the device, its kernels and their threads.
// Threads: thread-compatible.  Blocks: as the device.
// Errors: the constructor: as makeDevice(); kUnavailable if the host gives fewer threads.
struct ComputingDevice {
  ComputingDevice(const std::string& name, int threads, const ConvolutionRule& rule)
      : pool(threads), kernels(kernelsOf(name, pool, rule)), device(makeDevice(name)) {}

  ComputePool pool;
  KernelTable kernels;
  const std::unique_ptr<Device> device;
};

}  // namespace dtf::runtime
