#include "common/train/worker_devices.h"

#include <algorithm>

namespace dtf::train {

WorkerDevices::WorkerDevices(const std::vector<std::string>& names, int threads,
                             const runtime::ConvolutionRule& rule)
    : pool_(threads),
      kernels_(runtime::kernelsOf(names.at(0), pool_, rule)),
      device_(runtime::makeDevice(names.at(0))) {
  if (names.size() == 1) {
    towers_.each.push_back({device_.get(), &kernels_});
    return;
  }
  // With fewer threads than towers, each thread runs one tower after the other.
  together_ =
      std::make_unique<runtime::ComputePool>(std::min(threads, static_cast<int>(names.size())));
  towers_.together = together_.get();
  for (const std::string& name : names) {
    runtime::ComputingDevice& own = *own_.emplace_back(std::make_unique<runtime::ComputingDevice>(
        name, runtime::threadsOfEach(threads, names.size()), rule));
    towers_.each.push_back({own.device.get(), &own.kernels});
  }
}

WorkerDevices::~WorkerDevices() = default;

}  // namespace dtf::train
