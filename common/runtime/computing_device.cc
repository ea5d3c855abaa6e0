#include "common/runtime/computing_device.h"

#include <algorithm>
#include <charconv>

#include "common/base/check.h"
#include "common/base/isa.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "common/runtime/plugin_device.h"

namespace dtf::runtime {

namespace {

bool isGpu(const std::string& name) {
  return name.starts_with("gpu:");
}

// Returns the number in "cpu:3".
int indexOfDevice(const std::string& name) {
  int index = -1;
  const size_t colon = name.find(':');
  if (colon != std::string::npos)
    std::from_chars(name.data() + colon + 1, name.data() + name.size(), index);
  DTF_CHECK_MSG(index >= 0, name);
  return index;
}

}  // namespace

std::unique_ptr<Device> makeDevice(const std::string& name) {
  if (isGpu(name)) return std::make_unique<PluginDevice>(gpuPlugin(), indexOfDevice(name));
  return std::make_unique<CpuDevice>(indexOfDevice(name));
}

KernelTable kernelsOf(const std::string& name, ComputePool& pool, const ConvolutionRule& rule) {
  KernelTable kernels;
  registerCpuKernels(kernels, {bestIsa(), &pool}, rule);
  if (isGpu(name)) registerPluginKernels(kernels, gpuPlugin());
  return kernels;
}

int threadsOfEach(int threads, size_t devices) {
  DTF_CHECK(threads >= 1 && devices >= 1);
  return std::max(1, threads / static_cast<int>(devices));
}

graph::DeviceName fullName(TaskId task, const std::string& name) {
  return graph::fullDevice(task).mergedWith(graph::DeviceName::parse("/" + name));
}

}  // namespace dtf::runtime
