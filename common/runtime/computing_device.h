#pragma once

// A device by the name that the cluster file gives it, with what is needed to compute on it.

#include <memory>
#include <string>

#include "common/base/ids.h"
#include "common/graph/device_name.h"
#include "common/runtime/compute_pool.h"
#include "common/runtime/convolution_ways.h"
#include "common/runtime/device.h"
#include "common/runtime/kernel.h"

namespace dtf::runtime {

// "cpu:3" of this process, or "gpu:1" of the plug-in, which is loaded for it.
// Errors: kUnavailable when the host lacks the GPU or the plug-in.
std::unique_ptr<Device> makeDevice(const std::string& name);

// The CPU's kernels, computed by `pool`, and the plug-in's when `name` is a GPU. Borrows `pool`.
// `rule` is asked when kernels are made. Errors: as makeDevice().
KernelTable kernelsOf(const std::string& name, ComputePool& pool, const ConvolutionRule& rule);

// How many of a task's threads each of its devices computes with; at least 1.
int threadsOfEach(int threads, size_t devices);

// What a graph calls it: "gpu:1" of worker/0 is /job:worker/replica:0/task:0/device:GPU:1.
graph::DeviceName fullName(TaskId task, const std::string& name);

// One of the several devices of a process.
// Owns: the device, its kernels and their threads.
// Threads: thread-compatible.  Blocks: as the device.
// Errors: the constructor's: as makeDevice(); kUnavailable when the host gives fewer threads.
struct ComputingDevice {
  ComputingDevice(const std::string& name, int threads, const ConvolutionRule& rule)
      : pool(threads), kernels(kernelsOf(name, pool, rule)), device(makeDevice(name)) {}

  ComputePool pool;
  KernelTable kernels;
  const std::unique_ptr<Device> device;
};

}  // namespace dtf::runtime
