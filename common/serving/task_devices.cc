#include "common/serving/task_devices.h"

#include <algorithm>
#include <string>

#include "common/base/check.h"
#include "common/base/cores.h"
#include "common/base/host_memory.h"
#include "common/runtime/convolution_ways.h"

namespace dtf::serving {

namespace {

int threadsOf(const cluster::ClusterSpec& cluster, TaskId task) {
  if (task.job == JobKind::kPs) return availableCores();
  return cluster::computeThreads(cluster, task.index, availableCores());
}

std::vector<cluster::Address> addressesOf(const std::vector<cluster::TaskSpec>& tasks) {
  std::vector<cluster::Address> addresses;
  for (const cluster::TaskSpec& task : tasks) addresses.push_back(task.address);
  return addresses;
}

}  // namespace

ComputingDevices makeDevices(const cluster::ClusterSpec& cluster, TaskId task) {
  const std::vector<std::string> names = cluster::devicesOf(cluster.task(task));
  const int threads = runtime::threadsOfEach(threadsOf(cluster, task), names.size());
  ComputingDevices devices;
  for (const std::string& name : names)
    devices.push_back(
        std::make_unique<runtime::ComputingDevice>(name, threads, runtime::tableRule()));
  return devices;
}

std::vector<engine::SessionDevice> sessionDevices(TaskId task, const ComputingDevices& devices) {
  DTF_CHECK(!devices.empty());
  std::vector<engine::SessionDevice> named;
  for (const auto& each : devices)
    named.push_back({runtime::fullName(task, std::string(each->device->name())), each->device.get(),
                     &each->kernels, &each->pool});
  return named;
}

// The file cache, other programs and uncounted memory take the rest of the host's memory.
PartServerOptions serverOptions(const cluster::ClusterSpec& cluster, TaskId task,
                                uint32_t attempt) {
  PartServerOptions options{.self = task,
                            .incarnation = Incarnation::ofNow(attempt),
                            .ps = addressesOf(cluster.ps),
                            .workers = addressesOf(cluster.worker)};
  setSessionsMax(cluster.sessions_max, cluster.ps.size() + cluster.worker.size(), options.limits);
  const auto tasks = static_cast<uint64_t>(cluster::tasksBeside(cluster, task));
  if (const uint64_t total = hostMemory().total; total > 0)
    setBytesMax(total / 4 * 3 / tasks, options.limits);
  return options;
}

// A session has a connection from its client, and one from each other task that sends it tensors.
void setSessionsMax(size_t sessions, size_t tasks, ServeLimits& limits) {
  DTF_CHECK(sessions > 0 && sessions <= cluster::kSessionsMaxMost);
  DTF_CHECK(tasks > 0);
  constexpr size_t kBeside = 64;  // status queries, and clients that are refused
  limits.sessions = sessions;
  limits.connections = std::max(limits.connections, sessions * tasks + kBeside);
}

void setBytesMax(uint64_t bytes, ServeLimits& limits) {
  DTF_CHECK(bytes > 0);
  limits.bytes = bytes;
  limits.rendezvous.bytes = std::min(limits.rendezvous.bytes, bytes / 4);
}

}  // namespace dtf::serving
