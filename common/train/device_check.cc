#include "common/train/device_check.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace dtf::train {

namespace {

// Whether a task's own environment decides which GPUs it finds, and with which plug-in: then it is the task that says.
bool decidesDevices(const cluster::TaskSpec& task) {
  return std::ranges::any_of(task.env, [](const auto& variable) {
    const std::string_view name = variable.first;
    return name == "LD_LIBRARY_PATH" || name.starts_with("DTF_GPU_") || name.starts_with("CUDA_");
  });
}

}  // namespace

void checkDevices(const cluster::JobSpec& job, const Host& host, yaml::Report& report) {
  if (!host.missing) return;
  for (const cluster::TaskSpec& worker : job.cluster.worker) {
    if ((host.runs && !host.runs(worker.address)) || decidesDevices(worker)) continue;
    for (const std::string& device : cluster::devicesOf(worker)) {
      const std::string missing = host.missing(device);
      if (!missing.empty())
        report.error(report.placeOf(worker.mark), missing, ErrorCode::kUnavailable);
    }
  }
}

}  // namespace dtf::train
