#include "common/train/worker_devices.h"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "common/base/check.h"
#include "common/base/isa.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "common/runtime/plugin_device.h"

namespace dtf::train {

namespace {

// About what lies between two steps of a small model: a thread that slept is late by 0.1 ms. A tower's
// thread has the core to itself, as the worker has so many; a kernel's, which waits for its like only, sleeps
// sooner.
constexpr std::chrono::microseconds kTowerSpin{200};

constexpr std::string_view kGpu = "gpu:";

// Of "cpu:3".
int indexOf(const std::string& name) {
  int index = -1;
  const size_t colon = name.find(':');
  if (colon != std::string::npos)
    std::from_chars(name.data() + colon + 1, name.data() + name.size(), index);
  DTF_CHECK_MSG(index >= 0, name);
  return index;
}

std::unique_ptr<runtime::Device> makeDevice(const std::string& name) {
  if (name.starts_with(kGpu))
    return std::make_unique<runtime::PluginDevice>(runtime::gpuPlugin(), indexOf(name));
  return std::make_unique<runtime::CpuDevice>(indexOf(name));
}

// Of the kinds of device among `names`.
runtime::KernelTable kernelsOf(const std::vector<std::string>& names, runtime::ComputePool& pool,
                               const runtime::ConvolutionRule& rule) {
  runtime::KernelTable kernels;
  runtime::registerCpuKernels(kernels, {bestIsa(), &pool}, rule);
  if (std::ranges::any_of(names, [](const auto& name) { return name.starts_with(kGpu); }))
    runtime::registerPluginKernels(kernels, runtime::gpuPlugin());
  return kernels;
}

}  // namespace

int threadsOfTower(int threads, size_t towers) {
  DTF_CHECK(threads >= 1 && towers >= 1);
  return std::max(1, threads / static_cast<int>(towers));
}

// Of one tower.
struct WorkerDevices::Own {
  Own(const std::string& name, int threads, const runtime::ConvolutionRule& rule)
      : pool(threads), kernels(kernelsOf({name}, pool, rule)), device(makeDevice(name)) {}
  runtime::ComputePool pool;
  runtime::KernelTable kernels;
  const std::unique_ptr<runtime::Device> device;
};

WorkerDevices::WorkerDevices(const std::vector<std::string>& names, int threads,
                             const runtime::ConvolutionRule& rule)
    : pool_(threads),
      kernels_(kernelsOf({names.at(0)}, pool_, rule)),
      device_(makeDevice(names.at(0))) {
  if (names.size() == 1) {
    towers_.each.push_back({device_.get(), &kernels_});
    return;
  }
  // Fewer threads than towers: each takes a tower after the other.
  together_ = std::make_unique<runtime::ComputePool>(
      std::min(threads, static_cast<int>(names.size())), kTowerSpin);
  towers_.together = together_.get();
  for (const std::string& name : names) {
    Own& own = *own_.emplace_back(
        std::make_unique<Own>(name, threadsOfTower(threads, names.size()), rule));
    towers_.each.push_back({own.device.get(), &own.kernels});
  }
}

WorkerDevices::~WorkerDevices() = default;

}  // namespace dtf::train
